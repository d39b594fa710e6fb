// Package infra holds the nested templates of template.yaml, the container files and the parameters of each size. Its
// tests compare them with the code.
package infra
