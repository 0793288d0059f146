// What the pages do with scripts; everything can be read without them. Most of it is done by htmx, by attributes.
"use strict";

// Every request that a script makes contains the secret of the forms.
document.addEventListener("htmx:configRequest", (event) => {
  const key = document.querySelector("input[name=form_key]");
  if (key) event.detail.headers["X-Form-Key"] = key.value;
});
