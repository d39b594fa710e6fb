// Package setup makes the first user of a tenant, an administrator. It works once: as soon as there is a user,
// nobody can set up again, and of several requests at once one wins.
//
// Tables: none of its own; account makes the user.
package setup
