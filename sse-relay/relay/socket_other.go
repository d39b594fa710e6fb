//go:build !linux

package relay

// setUserTimeout does nothing here: the system's default decides when a vanished client is noticed.
func setUserTimeout(int) error { return nil }
