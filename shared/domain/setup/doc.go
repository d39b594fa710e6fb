// Package setup creates the first user of a tenant, an administrator. It works once: as soon as there is a user it is
// refused, and of several concurrent requests one wins. That user may then choose the first settings: unknown keys are
// ignored; one invalid value rejects all.
//
// Tables: none of its own; reads account; account creates the user, setting stores the settings.
package setup
