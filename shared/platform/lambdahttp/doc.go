// Package lambdahttp runs a function under the Lambda runtime if there is one, else as a server, from the same main.
//
// Serve handles events of API Gateway (HTTP API, REST API), application load balancers and buffered function URLs,
// which it recognises by their content. Stream handles those of a streaming function URL. Invoke handles everything
// else. What they share:
//
//   - The handler's context ends a second before Lambda would end the process. If the handler continues, the response
//     is 503, half a second before that end.
//   - A buffered response that is too large for Lambda becomes 400: the client can ask for less.
//   - A panic affects its own invocation only. A streamed response that breaks off ends with an error of the function,
//     so that nobody takes it for complete.
//   - after runs when the response is sent, before Lambda freezes the process. It sends pending data.
//   - r.RemoteAddr is the peer that the gateway saw, r.Host the Host header that it received, and r.TLS is set if the
//     client used https. X-Forwarded-* has what proxies in front of the gateway report, and TRUSTED_PROXIES says which
//     to trust: 0 if clients reach the gateway directly, 2 behind CloudFront (the gateway adds CloudFront's address to
//     the list).
//   - The request id is that of the Lambda invocation.
//
// An API Gateway stage other than $default is removed from the path at its execute-api address. Without multi-value
// headers a load balancer passes only the last of several header values and accepts one cookie per response: switch
// them on.
package lambdahttp
