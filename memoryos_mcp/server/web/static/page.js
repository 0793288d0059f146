// What the pages do with scripts; everything can be read without them. Most of it is done by htmx, by attributes.
"use strict";

// Every request that a script makes contains the secret of the forms.
document.addEventListener("htmx:configRequest", (event) => {
  const key = document.querySelector("input[name=form_key]");
  if (key) event.detail.headers["X-Form-Key"] = key.value;
});

// The playground: shows an answer while the LLM writes it. All texts are set as text, never as HTML.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form[data-stream]");
  if (!form || !window.ReadableStream) return;
  const log = document.getElementById("conversation");
  const [send, stop] = [form.querySelector("button"), document.getElementById("stop")];

  const element = (name, text, kind) => {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const link = (path, text) => {
    const made = element("a", text);
    made.setAttribute("href", path);
    return made;
  };
  const showUsed = (part, used) => {
    part("summary").textContent = used.summary;
    for (const [title, items] of used.groups) {
      const list = element("ul", "", "plain");
      for (const item of items) {
        const row = element("li", "");
        for (const mark of item.marks) row.append(element("span", mark, "mark"), " ");
        row.append(link(item.path, item.link), " ", element("span", item.text, "said"));
        list.append(row);
      }
      part("groups").append(element("h3", title), list);
    }
  };
  const show = (part, line) => {
    if (line.used) showUsed(part, line.used);
    if (line.piece) part("answer").textContent += line.piece;
    if (line.end) {
      part("end").append(element("small", line.end.text));
      if (line.end.path) part("end").append(" ", link(line.end.path, "The page"));
    }
  };
  const ask = async (part, body, signal) => {
    const response = await fetch(form.dataset.stream, { method: "POST", body, signal });
    if (!response.ok) throw new Error(response.status === 401 ? "Your session has ended. Load this page again." : "The server refused the message. Load this page again.");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", isWhole = false;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const lines = (rest + next.value).split("\n");
      rest = lines.pop();
      for (const line of lines.map((each) => JSON.parse(each))) {
        if (line.problem) throw new Error(line.problem);
        show(part, line);
        isWhole ||= Boolean(line.end);
      }
    }
    if (!isWhole) throw new Error("The answer was cut off.");
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.disabled) return;
    const body = new URLSearchParams(new FormData(form));
    const shown = document.getElementById("exchange").content.firstElementChild.cloneNode(true);
    const part = (name) => shown.querySelector(`[data-part=${name}]`);
    const query = form.elements.query;
    part("question").textContent = query.value;
    query.value = "";
    log.append(shown);
    const cancelling = new AbortController();
    stop.onclick = () => cancelling.abort();
    [send.disabled, stop.hidden, log.ariaBusy] = [true, false, "true"];
    try {
      await ask(part, body, cancelling.signal);
    } catch (error) {
      const problem = cancelling.signal.aborted ? "Stopped." : error instanceof TypeError ? "The server cannot be reached." : error.message;
      part("problem").textContent = problem;
      part("problem").hidden = false;
      query.value ||= body.get("query");
    } finally {
      [send.disabled, stop.hidden, log.ariaBusy] = [false, true, "false"];
      query.focus();
    }
  });
});
