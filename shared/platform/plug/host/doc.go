// Package host runs plugins: it starts their processes, speaks their protocol, and fetches the pictures that they name.
//
//   - Messages are objects of JSON-RPC 2.0 (https://www.jsonrpc.org/specification), one a line, on the process's
//     standard input and output; its standard error goes to the log.
//   - A process is told to initialize and answers with its manifest. It stays for calls with the same Start, until
//     nobody has asked it for some minutes, others need its place, or it breaks the protocol.
//   - A process that does not answer in time is ended with all its children: it may hang for ever.
//   - It gets its own environment, data folder and group of processes, and dies with this program.
package host
