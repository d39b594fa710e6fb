// Package infra holds what template.yaml nests, the container files and the sizes of installations; its tests compare
// them with the code.
package infra
