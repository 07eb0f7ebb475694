// Who looks at the page: sign in by token, and sign out. The token leaves this page at once and stays nowhere in it.

const section = document.getElementById("sign-in");
const problem = document.getElementById("sign-in-problem");
const field = document.getElementById("token");
const out = document.getElementById("sign-out");

/** Return who looks, or why the controller does not tell more: {name, session} or {refusal}. Rejects where it is away. */
export async function whoLooks() {
  const answer = await fetch("/page/session");
  if (answer.ok) return answer.json();
  throw new Error(`the controller answers ${answer.status}`);
}

/** Ask for a token until one is taken. */
export function askForToken(why) {
  section.hidden = false;
  problem.textContent = why;
  field.focus();
  return new Promise((resolve) => {
    const form = section.querySelector("form");
    async function submit(event) {
      event.preventDefault();
      const token = field.value;
      field.value = "";
      try {
        const answer = await fetch("/page/session", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ token }),
        });
        if (answer.ok) {
          form.removeEventListener("submit", submit);
          section.hidden = true;
          resolve(await answer.json());
          return;
        }
        problem.textContent = await refusal(answer);
      } catch {
        problem.textContent = "The controller does not answer.";
      }
      field.focus();
    }
    form.addEventListener("submit", submit);
  });
}

async function refusal(answer) {
  const text = (await answer.text()).trim();
  return answer.status === 429 ? "Too many attempts. Wait a few seconds." : `Refused: ${text}`;
}

export function showSession({ name, session }) {
  out.hidden = !session;
  out.textContent = name ? `Sign out ${name}` : "Sign out";
}

out.addEventListener("click", async () => {
  await fetch("/page/session", { method: "DELETE" });
  location.reload();
});
