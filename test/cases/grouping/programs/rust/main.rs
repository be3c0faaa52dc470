//! Runs the bug that its argument names: a panic, which the runtime prints, or an error with its backtrace.
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

mod store;

#[derive(Debug)]
struct PayError {
    message: String,
    backtrace: Backtrace,
}

impl fmt::Display for PayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

//2 // Edited:
//2 // two lines more.
#[inline(never)]
fn fail(message: String) -> PayError {
    PayError { message, backtrace: Backtrace::force_capture() }
}

#[inline(never)]
fn charge(user: &str) -> Result<(), PayError> {
    Err(fail(format!("no card of user {user}")))
}

#[inline(never)]
fn refund(user: &str) -> Result<(), PayError> {
    Err(fail(format!("no card of user {user}")))
}

struct Cart {
    items: Vec<u32>,
    owner: Option<String>,
}

struct Order {
    items: Vec<u32>,
}

trait Priced {
    fn total(&self, last: usize) -> u32;
}

impl Priced for Cart {
    #[inline(never)]
    fn total(&self, last: usize) -> u32 {
        self.items[last]
    }
}

impl Priced for Order {
    #[inline(never)]
    fn total(&self, last: usize) -> u32 {
        self.items[last]
    }
}

impl Cart {
    #[inline(never)]
    fn owner_name(&self) -> &str {
        //2 // Edited.
        self.owner.as_ref().unwrap()
    }
    #[inline(never)]
    fn owner_length(&self) -> usize {
        self.owner.as_ref().unwrap().len()
    }
    #[inline(never)]
    fn first_with(&self, minimum: u32) -> u32 {
        self.items.iter().map(|price| price.checked_sub(minimum).unwrap()).sum()
    }
    #[inline(never)]
    fn last_with(&self, minimum: u32) -> u32 {
        self.items.iter().rev().map(|price| price.checked_sub(minimum).unwrap()).sum()
    }
    #[inline(never)]
    fn share(&self, count: u32) -> u32 {
        self.items[0] / count
    }
}

#[inline(never)]
fn walk(cart: &Cart, depth: u32) -> u32 {
    if depth == 0 { cart.items[9] } else { walk(cart, depth - 1) + 1 }
}

#[inline(never)]
fn parse_amount(text: &str) -> u32 {
    text.parse().unwrap()
}

#[inline(never)]
fn parse_count(text: &str) -> u32 {
    text.parse().unwrap()
}

#[inline(never)]
fn expect_user(users: &HashMap<&str, u32>, name: &str) -> u32 {
    *users.get(name).unwrap_or_else(|| panic!("no user {name}"))
}

#[inline(never)]
fn check_sum(left: u32, right: u32) {
    assert_eq!(left, right);
}

#[inline(never)]
fn borrow_twice(cell: &RefCell<u32>) {
    let _held = cell.borrow_mut();
    *cell.borrow_mut() += 1;
}

#[inline(never)]
fn borrow_again(cell: &RefCell<u32>) -> u32 {
    let _held = cell.borrow_mut();
    *cell.borrow_mut()
}

#[inline(never)]
fn in_thread(name: &str) {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(|| Cart { items: vec![1], owner: None }.owner_length())
        .unwrap()
        .join()
        .ok();
}

fn print(result: Result<(), PayError>) {
    if let Err(error) = result {
        eprintln!("{}\n{error}\n{}", std::any::type_name_of_val(&error), error.backtrace);
    }
}

fn main() {
    let name = std::env::args().nth(1).unwrap();
    let cart = Cart { items: vec![1, 2], owner: None };
    match name.as_str() {
        "owner" => drop(cart.owner_name().len()),
        "owner-length" => drop(cart.owner_length()),
        "total" => drop(cart.total(3)),
        "total-other" => drop(cart.total(77)),
        "order-total" => drop(Order { items: vec![1] }.total(3)),
        "first-with" => drop(cart.first_with(5)),
        "last-with" => drop(cart.last_with(5)),
        "share" => drop(cart.share(0)),
        "walk-2" => drop(walk(&cart, 2)),
        "walk-30" => drop(walk(&cart, 30)),
        "amount" => drop(parse_amount("four")),
        "amount-other" => drop(parse_amount("12,50")),
        "count" => drop(parse_count("four")),
        "user" => drop(expect_user(&HashMap::new(), "ada")),
        "user-other" => drop(expect_user(&HashMap::new(), "bob-17")),
        "sum" => check_sum(4, 5),
        "sum-other" => check_sum(400, 17),
        "borrow" => borrow_twice(&RefCell::new(1)),
        "borrow-again" => drop(borrow_again(&RefCell::new(1))),
        "thread-1" => in_thread("worker-1"),
        "thread-2" => in_thread("worker-2"),
        "read" => drop(store::read_order("/srv/orders/17.json")),
        "read-other" => drop(store::read_order("/srv/orders/4711.json")),
        "load" => drop(store::load_stock("/srv/orders/17.json")),
        "charge" => print(charge("17")),
        "charge-other" => print(charge("ada")),
        "refund" => print(refund("17")),
        _ => unreachable!(),
    }
}
