// Package setup makes the first user of a tenant, an administrator. It works once: as soon as there is a user, it is
// refused, and of several requests at once one wins. That user may then choose the first settings: unknown keys are
// left out; one value that is not allowed refuses all of them.
//
// Tables: none of its own; reads account; account makes the user, setting stores the settings.
package setup
