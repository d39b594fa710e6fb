// Package docs holds the operator's guide, the decisions and the notes on the interface; its tests compare them with
// the code.
package docs
