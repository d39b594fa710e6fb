package account

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

// confirmScript sends the token in the address when the button is pressed. Opening the page does nothing yet, because
// mail scanners open every link.
const confirmScript = `
const text = document.querySelector('p'), button = document.querySelector('button')
button.hidden = false
button.onclick = async () => {
  button.disabled = true
  const token = new URLSearchParams(location.search).get('token') || ''
  const status = await fetch('api/v1/auth/verify-email', {method: 'POST', headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({token})}).then(answer => answer.status, () => 0)
  button.disabled = false
  button.hidden = status === 200 || status === 400
  text.textContent = status === 200 ? 'Your e-mail address is confirmed. You can sign in now.'
    : status === 400 ? 'This link was used before, or it is older than 24 hours. Try to sign in; if you cannot, ask for a new mail.'
    : 'That did not work. Wait a moment and try again.'
}
`

// confirmPage is the page behind the link in the mail. It contains nothing of its address.
const confirmPage = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Confirm your e-mail address</title>
<link rel="icon" href="data:,">
</head>
<body>
<p>Confirm that this e-mail address is yours.</p>
<button hidden>Confirm</button>
<noscript>This page needs JavaScript. Your reading app may take the code of the mail instead.</noscript>
<script>` + confirmScript + `</script>
</body>
</html>
`

// confirmRoutes serves the page behind the link in the mail without authentication.
func confirmRoutes(a *httpapi.API) {
	hash := sha256.Sum256([]byte(confirmScript))
	policy := "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; img-src data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	a.Router.Get("/verify-email", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Cache-Control", "no-store") // its address contains the token
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, confirmPage)
		}
	})
}
