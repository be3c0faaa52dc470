//! Reads files that are missing.
#[inline(never)]
pub fn read_order(path: &str) -> String {
    std::fs::read_to_string(path).expect("the order is readable")
}

#[inline(never)]
pub fn load_stock(path: &str) -> String {
    std::fs::read_to_string(path).expect("the stock is readable")
}
