<?php
// Runs each bug, and writes it in the three forms in which stacks of PHP are sent, as lines of JSON.
declare(strict_types=1);

namespace Shop;

class Declined extends \RuntimeException {}

//2 // Edited:
//2 // two lines more.
class Cart
{
    public ?Cart $parent = null;
    public array $items = [];
    public function total(int $last): int { return self::checked($this->items, $last); }
    public static function checked(array $items, int $last): int
    {
        if (!isset($items[$last])) throw new \OutOfRangeException("no item $last");
        return $items[$last];
    }
    public function parentName(): string
    {
        //2 // Edited.
        return $this->parent->name();
    }
    public function parentMail(): string { return $this->parent->mail(); }
    public function walk(int $depth): string { return $depth === 0 ? $this->parent->name() : $this->walk($depth - 1); }
    public function sum(array $prices): int { return array_sum(array_map(fn ($price) => intdiv(10, $price), $prices)); }
    public function max(array $prices): int { return max(array_map(fn ($price) => intdiv(10, $price), $prices)); }
    public function __get(string $name) { throw new \LogicException("no property $name"); }
    public static function __callStatic(string $name, array $args) { throw new \BadMethodCallException("no method $name"); }
}

class Order
{
    public array $items = [];
    public function total(int $last): int { return Cart::checked($this->items, $last); }
}

function charge(string $user, mixed $card = null): void { throw new Declined("no card of user $user"); }
function refund(string $user): void { throw new Declined("no card of user $user"); }
function loadStock(string $text): int { return Order::count($text); }
function readOrder(string $text): mixed { return json_decode($text, flags: JSON_THROW_ON_ERROR); }
function readCart(string $text): mixed { return json_decode($text, flags: JSON_THROW_ON_ERROR); }
function share(int $count): int { return intdiv(10, $count); }
function modulo(int $count): int { return 10 % $count; }
function checkout(string $kind): void
{
    try {
        $kind === 'json' ? readOrder('{no}') : share(0);
    } catch (\Throwable $e) {
        throw new \RuntimeException('the checkout failed', 1, $e);
    }
}
function openOrders(string $dsn): void { new \PDO($dsn); }
function openUsers(string $dsn): void { new \PDO($dsn); }
function anonymous(int $id): void
{
    $handler = new class { public function handle(int $id): void { throw new \LogicException("no handler of $id"); } };
    $handler->handle($id);
}
function anonymousToo(int $id): void
{
    $handler = new class { public function handle(int $id): void { throw new \LogicException("no handler of $id"); } };
    $handler->handle($id);
}
function retry(int $attempts): void
{
    for ($i = 1; ; $i++) {
        try { share(0); } catch (\DivisionByZeroError $e) { if ($i === $attempts) throw $e; }
    }
}
function fiber(callable $body): void { (new \Fiber($body))->start(); }
function generated(array $counts): \Generator { foreach ($counts as $count) yield share($count); }
function typed(mixed $value): int { return strlen($value); }

/** The form of OpenTelemetry's StackTraceFormatter: like Java, dots for backslashes. */
function formatted(\Throwable $e, bool $inner = false): string
{
    $dots = fn (string $name) => str_replace('\\', '.', $name);
    $text = ($inner ? 'Caused by: ' : '') . $dots($e::class) . ': ' . $e->getMessage();
    $file = $e->getFile();
    $line = $e->getLine();
    foreach ([...$e->getTrace(), []] as $frame) {
        $name = isset($frame['class']) ? $dots($frame['class']) . '.' : '';
        $text .= "\n at " . $name . $dots($frame['function'] ?? '{main}')
            . ($file === null ? '(Unknown Source)' : '(' . basename($file) . ($line ? ":$line" : '') . ')');
        $file = $frame['file'] ?? null;
        $line = $frame['line'] ?? null;
    }
    return $text . ($e->getPrevious() ? "\n" . formatted($e->getPrevious(), true) : '');
}

function bug(string $scenario, callable $body): void
{
    try {
        $body();
    } catch (\Throwable $e) {
        $forms = ['' => (string) $e, 'trace:' => $e->getTraceAsString(), 'otel:' => formatted($e)];
        foreach ($forms as $form => $stack) {
            $line = ['scenario' => $form . $scenario, 'type' => $e::class, 'message' => $e->getMessage(), 'stacktrace' => $stack];
            echo json_encode($line, JSON_UNESCAPED_SLASHES), "\n";
        }
    }
}

ini_set('zend.exception_ignore_args', '0');
$cart = new Cart();
bug('total', fn () => $cart->total(3));
bug('total-other', fn () => $cart->total(77));
bug('order-total', fn () => (new Order())->total(3));
bug('parent-name', fn () => $cart->parentName());
bug('parent-mail', fn () => $cart->parentMail());
bug('walk-2', fn () => $cart->walk(2));
bug('walk-30', fn () => $cart->walk(30));
bug('sum', fn () => $cart->sum([0]));
bug('sum-other', fn () => $cart->sum([1, 2, 0]));
bug('max', fn () => $cart->max([0]));
bug('charge', fn () => charge('17'));
bug('charge-other', fn () => charge('ada@shop.example', new Order()));
bug('charge-lines', fn () => charge("17\n#0 /srv/shop/pay.php(3): refund()"));
bug('refund', fn () => refund('17'));
bug('read-order', fn () => readOrder('{no}'));
bug('read-order-other', fn () => readOrder('[1, 2'));
bug('read-cart', fn () => readCart('{no}'));
bug('share', fn () => share(0));
bug('modulo', fn () => modulo(0));
bug('checkout-json', fn () => checkout('json'));
bug('checkout-share', fn () => checkout('share'));
bug('open-orders', fn () => openOrders('shop:host=db-1'));
bug('open-orders-other', fn () => openOrders('shop:host=db-2;port=7'));
bug('open-users', fn () => openUsers('shop:host=db-1'));
bug('anonymous', fn () => anonymous(17));
bug('anonymous-other', fn () => anonymous(4711));
bug('anonymous-too', fn () => anonymousToo(17));
bug('retry-1', fn () => retry(1));
bug('retry-3', fn () => retry(3));
bug('fiber-share', fn () => fiber(fn () => share(0)));
bug('fiber-modulo', fn () => fiber(fn () => modulo(0)));
bug('generated', fn () => iterator_to_array(generated([0])));
bug('generated-other', fn () => iterator_to_array(generated([1, 2, 0])));
bug('typed', fn () => typed(17));
bug('typed-other', fn () => typed([]));
