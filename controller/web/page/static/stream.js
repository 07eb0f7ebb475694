// The stream of changes: it comes back by itself, and says when it is gone.

import { setClock, take } from "./state.js";

const SILENT_MS = 13_000;
const RETRY_MS = 2_000;
const HIDDEN_MS = 60_000;

/** Follow the controller. `onLost` and `onBack` tell of the connection, `onRefused` that somebody has to sign in. */
export function followController({ onLost, onBack, onRefused }) {
  let source = null;
  let silence = 0;
  let isStopped = false;

  function heard() {
    clearTimeout(silence);
    silence = setTimeout(reopen, SILENT_MS);
    onBack();
  }

  function open() {
    source = new EventSource("/page/events");
    source.addEventListener("state", (event) => {
      take(JSON.parse(event.data));
      heard();
    });
    source.addEventListener("alive", (event) => {
      setClock(Number(event.data));
      heard();
    });
    source.addEventListener("error", () => {
      onLost();
      // A browser tries again by itself, unless it was refused.
      if (source.readyState === EventSource.CLOSED) ask();
    });
    clearTimeout(silence);
    silence = setTimeout(reopen, SILENT_MS);
  }

  function reopen() {
    onLost();
    source.close();
    if (!isStopped) open();
  }

  async function ask() {
    if (isStopped) return;
    try {
      const { refusal } = await (await fetch("/page/session")).json();
      if (refusal) {
        stop();
        onRefused();
        return;
      }
    } catch {
      // The controller is away: try again below.
    }
    setTimeout(() => {
      if (!isStopped) reopen();
    }, RETRY_MS);
  }

  // Browsers keep few connections to one server: a page that nobody sees gives its own back.
  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (isStopped) return;
    if (document.hidden) {
      hiding = setTimeout(() => {
        clearTimeout(silence);
        source.close();
      }, HIDDEN_MS);
    } else if (source.readyState === EventSource.CLOSED) open();
  });

  function stop() {
    isStopped = true;
    clearTimeout(silence);
    source?.close();
  }

  open();
  return stop;
}
