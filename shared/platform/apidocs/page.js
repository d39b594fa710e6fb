"use strict";
window.addEventListener("load", () => {
  const root = document.getElementById("docs");
  window.ui = SwaggerUIBundle({
    url: root.dataset.url,
    domNode: root,
    layout: "BaseLayout",
    deepLinking: true,
    docExpansion: "none",
    filter: true,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    persistAuthorization: false, // a token stays in this page and goes with it
    validatorUrl: null, // nothing is sent to another host
  });
});
