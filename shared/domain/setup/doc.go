// Package setup makes the first user of a tenant, an administrator. It works once: as soon as there is a user,
// nobody can set up again, and of several requests at once one wins. That user may then choose the first settings;
// keys that nobody knows are left out, a value that is not possible is refused with all others.
//
// Tables: none of its own; account makes the user, setting stores the settings.
package setup
