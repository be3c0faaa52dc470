export function render(view) {
  return view.root.children.length
}
export function measure(view) {
  return view.root.children.length
}
