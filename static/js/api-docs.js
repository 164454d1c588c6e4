// Shows the OpenAPI document with Swagger UI. Nothing is asked of any other server.
(function () {
  "use strict";

  const place = document.getElementById("operations");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();

  window.SwaggerUIBundle({
    url: place.dataset.document,
    domNode: place,
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: false,
    docExpansion: "list",
    persistAuthorization: false,
    // The default sends the document's address to a server elsewhere.
    validatorUrl: null,
  });
})();
