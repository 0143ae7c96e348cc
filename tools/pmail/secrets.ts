/** `pmail secrets rotate-master`: seals everything again under PM_MASTER_KEY_NEXT. */
import { rotateMaster } from "../../actors/rotate_master.ts";
import { secretsPath } from "../../lib/edge/local_secrets.ts";
import { realNow, realRandom } from "../../lib/edge/ports.ts";
import { makeSealer } from "../../lib/edge/seal.ts";
import { type Command, Refused, withStore } from "./command.ts";

export const secretCommands: Command[] = [{
  name: "secrets rotate-master",
  kind: "offline",
  summary: "seal every secret again under PM_MASTER_KEY_NEXT; goes on where a killed run was",
  options: {},
  examples: [
    "export PM_MASTER_KEY_NEXT=$(openssl rand -base64 32)   # for every service, and restart them",
    "pmail secrets rotate-master",
    "# then: PM_MASTER_KEY takes the value of PM_MASTER_KEY_NEXT, which is unset; restart once more",
  ],
  run: (line) =>
    withStore(async ({ config, kv, committer, ids }) => {
      const { masterKey, masterKeyNext } = config.secrets;
      if (masterKeyNext === null) {
        throw new Refused(
          "no_next_key",
          "Cannot rotate the master key: PM_MASTER_KEY_NEXT is not set.",
          "Make one with: openssl rand -base64 32. Set it for every service and restart them, then run this again.",
        );
      }
      console.error(
        "Every service on this store must have been restarted with PM_MASTER_KEY_NEXT; one without it cannot open what is sealed now.",
      );
      const sealer = makeSealer(masterKey.bytes, masterKeyNext.bytes, realRandom);
      const done = await rotateMaster({
        kv,
        committer,
        now: realNow,
        ids,
        sealer,
        progress: ({ endpoints, resealed }) =>
          console.error(`${endpoints} endpoints, ${resealed} values sealed anew`),
      });
      const { unopenable } = done, finished = unopenable.length === 0;
      const where = Deno.env.get("PM_MASTER_KEY")
        ? "PM_MASTER_KEY"
        : `PM_MASTER_KEY in ${secretsPath(config.kvPath)}`;
      const lines = unopenable.map(({ endpoint, column, code }) => `${endpoint} ${column}: ${code}`);
      line.answer(
        { ...done, finished, kid: sealer.kid },
        finished
          ? `Done: ${done.endpoints} endpoints, ${done.resealed} values sealed anew under ${sealer.kid}.\n` +
            `${where} can now be replaced by the value of PM_MASTER_KEY_NEXT; unset PM_MASTER_KEY_NEXT and restart the services.`
          : `Not finished: ${unopenable.length} values do not open under either key.\n${lines.join("\n")}\n` +
            "Restore the key they were sealed under, or give each of these endpoints a new secret: " +
            "pmail webhooks rotate ID --overlap-hours 0. Then run this again.",
      );
      return finished ? 0 : 1;
    }),
}];
