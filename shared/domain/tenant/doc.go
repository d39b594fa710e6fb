// Package tenant finds the tenant of a host name. A tenant is one customer's library server; a single-tenant
// installation has the one named Default, which answers to any host.
//
// Tables: rendition_usage, which app.keep_rendition adds to; reads tenant.
package tenant
