// Package cart has bugs that panic.
package cart

//2 // Edited: two lines
//2 // more than before.

type Item struct{ Price, Count int }

type Cart struct {
	Items  []Item
	owners map[string]int
	Parent *Cart
}

type Order struct{ Items []Item }

//go:noinline
func (c *Cart) Total(last int) int { return c.Items[last].Price }

//go:noinline
func (o Order) Total(last int) int { return o.Items[last].Price }

//go:noinline
func (c *Cart) Discount(last int) int {
	//2 last += 0
	return c.Items[last].Price / 2
}

//go:noinline
func (c *Cart) Own(name string) { c.owners[name] = 1 }

//go:noinline
func (c *Cart) ParentPrice() int { return c.Parent.Items[0].Price }

//go:noinline
func (c *Cart) Average(count int) int { return 10 / count }

//go:noinline
func Walk(c *Cart, depth int) int {
	if depth == 0 {
		return c.Parent.Items[0].Price
	}
	return Walk(c, depth-1) + 1
}

//go:noinline
func Last[T any](values []T, last int) T { return values[last] }

func each(c *Cart, f func(Item) int) int {
	sum := 0
	for _, item := range c.Items {
		sum += f(item)
	}
	return sum
}

//go:noinline
func (c *Cart) Report(which int, prices []int) int {
	first := func(i Item) int { return prices[i.Price] }
	second := func(i Item) int { return 1 / (i.Count - i.Count) }
	if which == 1 {
		return each(c, first)
	}
	return each(c, second)
}

//go:noinline
func (c *Cart) Close(last int) int {
	defer func() { c.owners["closed"] = 1 }()
	if last > 0 {
		return c.Items[last].Price
	}
	return 0
}

//go:noinline
func (c *Cart) Convert(v any) string { return v.(string) }

// Small is inlined by the compiler's default, and a call without inlining.
func (c *Cart) Small(last int) int { return c.Items[last].Count }

//go:noinline
func (c *Cart) Show(last int) int { return c.Small(last) }
