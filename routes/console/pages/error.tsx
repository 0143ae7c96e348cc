/** What went wrong, in the API's own words, and the ways on. */
import type { ApiError } from "../../../lib/errors.ts";
import { Head } from "../ui.tsx";

export function ErrorBody(
  { title, error, requestId, signedIn }: {
    title: string;
    error: ApiError | null;
    requestId: string;
    signedIn: boolean;
  },
) {
  const notFound = error?.status === 404;
  return (
    <>
      <Head title={title} />
      <div class="stack">
        <div class="note bad" role="alert">
          <b>
            {notFound
              ? "There is nothing here, or it is out of your reach."
              : error?.message ?? "Cannot answer: something failed on our side."}
          </b>
          <p>
            {notFound
              ? "Check the address. What belongs to others looks the same as what does not exist."
              : error?.fix ?? "Load the page again in a moment. If it goes on, report the request id."}
          </p>
        </div>
        <p class="small muted">
          Request id <code>{requestId}</code>
        </p>
        <p>
          <a href="/console">{signedIn ? "To the overview" : "To the sign-in"}</a>
        </p>
      </div>
    </>
  );
}
