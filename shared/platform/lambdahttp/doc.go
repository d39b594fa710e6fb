// Package lambdahttp runs the functions' work: under the Lambda runtime where that is present, else as a server of its
// own, from the same main.
//
// Serve answers the events of API Gateway (HTTP API, REST API), application load balancers and buffered function URLs,
// told apart by the event itself; Stream answers those of a streaming function URL; Invoke takes everything else. What
// they share:
//
//   - The handler's context ends a second before Lambda would end the process; a handler that goes on regardless is
//     answered for with 503 half a second before.
//   - A buffered answer that is larger than Lambda takes is 400: the client can ask for less.
//   - A panic costs its own invocation and no other. A streamed answer that breaks off ends as the function's error, so
//     that nobody takes what came for the whole.
//   - after runs when the answer is out and before Lambda freezes the process: it sends what is unsent.
//   - r.RemoteAddr is the peer that the gateway saw, r.Host the Host header it received, r.TLS is set where the client
//     came by https. What proxies before the gateway say is in X-Forwarded-*, for TRUSTED_PROXIES to weigh: 0 where
//     clients reach the gateway directly, 2 behind CloudFront (the gateway adds CloudFront's address to the list).
//   - The id of the request is that of the Lambda invocation.
//
// An API Gateway stage other than $default is taken off the path of its execute-api address. Without multi-value
// headers a load balancer passes only the last of several values and takes one cookie of an answer: switch them on.
package lambdahttp
