package events

func (c Config) WithDefaults() Config { return c.withDefaults() }
