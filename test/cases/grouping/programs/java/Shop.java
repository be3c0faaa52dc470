package com.shop;

import java.io.Closeable;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Runs each bug, and writes what OpenTelemetry's SDK records of it as a line of JSON. */
public class Shop {
  static class Declined extends RuntimeException {
    Declined(String message) { super(message); }
    Declined(String message, Throwable cause) { super(message, cause); }
  }

  interface Stock { int count(String item); }

  static class Cart {
    String owner;
    int[] items = {1, 2};
    //2 // Edited:
    //2 // two lines more.
    int total(int last) { return items[last]; }
    int ownerLength() { return owner.length(); }
    String ownerName() { return owner.trim(); }
    Integer cast(Object value) { return (Integer) value; }
    int walk(int depth) { return depth == 0 ? owner.length() : walk(depth - 1) + 1; }
    int endless(int n) { return endless(n + 1) + 1; }
    int endlessToo(int n) { return endlessToo(n + 1) + 1; }
  }

  static class Order {
    int[] items = {1, 2};
    int total(int last) { return items[last]; }
  }

  static class Prices { static final int FIRST = Integer.parseInt("none"); }
  static class Rates { static final int FIRST = Integer.parseInt("none"); }

  static void charge(String user) { throw new IllegalArgumentException("no card of user " + user); }
  static void refund(String user) { throw new IllegalArgumentException("no card of user " + user); }
  static int loadStock(String item) { return Integer.parseInt(item); }
  static int loadPrice(Map<String, Integer> prices, String item) { return prices.get(item); }
  static void readOrder(String path) {
    try { Files.readString(Path.of(path)); } catch (IOException e) { throw new UncheckedIOException(e); }
  }
  static void readCart(String path) {
    try { Files.readString(Path.of(path)); } catch (IOException e) { throw new UncheckedIOException(e); }
  }
  static void step(String kind) throws Exception {
    if (kind.equals("number")) loadStock("x"); else Files.readString(Path.of("/srv/none"));
  }
  static void checkout(String kind) {
    try { step(kind); } catch (Exception e) { throw new Declined("the checkout failed", e); }
  }
  static void openOrders(String url) throws Exception { DriverManager.getConnection(url); }
  static void openUsers(String url) throws Exception { DriverManager.getConnection(url); }
  static void fetchRates(String url) throws Exception { get(url); }
  static void fetchStock(String url) throws Exception { get(url); }
  static void get(String url) throws Exception {
    HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
  }
  static void close(String message) throws Exception {
    Closeable file = () -> { throw new IOException(message); };
    try (file) { charge("17"); }
  }
  static int sumPrices(List<String> items) { return items.stream().mapToInt(i -> Integer.parseInt(i)).sum(); }
  static int sumCounts(List<String> items) { return items.stream().mapToInt(i -> Integer.parseInt(i)).sum(); }
  static Runnable lambda(int which) {
    //2 Runnable added = () -> charge("added");
    Runnable first = () -> { throw new IllegalStateException("no stock"); };
    Runnable second = () -> { throw new IllegalStateException("no stock"); };
    return which == 1 ? first : second;
  }
  static Runnable anonymous(int which) {
    Runnable first = new Runnable() { public void run() { throw new IllegalStateException("no stock"); } };
    Runnable second = new Runnable() { public void run() { throw new IllegalStateException("no stock"); } };
    return which == 1 ? first : second;
  }
  static void retry(int attempts) {
    NumberFormatException last = null;
    for (int i = 0; i < attempts; i++) {
      try { loadStock("attempt-" + i); } catch (NumberFormatException e) { last = e; }
    }
    throw last;
  }
  static <T> T inPool(Callable<T> task, int busy) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(busy + 1);
    CountDownLatch held = new CountDownLatch(1);
    try {
      for (int i = 0; i < busy; i++) pool.submit(() -> { held.await(); return 0; });
      return pool.submit(task).get();
    } finally { held.countDown(); pool.shutdown(); }
  }
  static Object joined(Runnable task) { return CompletableFuture.runAsync(task).thenApply(x -> 1).join(); }
  static void waitForStock() throws Exception { new CompletableFuture<Integer>().get(5, TimeUnit.MILLISECONDS); }
  static void waitForRates() throws Exception { new CompletableFuture<Integer>().get(5, TimeUnit.MILLISECONDS); }
  static void proxied(int proxiesBefore) {
    for (int i = 0; i < proxiesBefore; i++) {
      Class<?> other = List.of(Runnable.class, Callable.class, Comparable.class).get(i % 3);
      Proxy.newProxyInstance(Shop.class.getClassLoader(), new Class<?>[] {other}, (p, m, a) -> null);
    }
    Stock stock = (Stock) Proxy.newProxyInstance(Shop.class.getClassLoader(), new Class<?>[] {Stock.class},
        (proxy, method, args) -> loadStock((String) args[0]));
    stock.count("none");
  }
  static void reflect(String name, int times) throws Exception {
    var method = Shop.class.getDeclaredMethod(name, String.class);
    for (int i = 0; i < times; i++) try { method.invoke(null, "17"); } catch (Exception e) { if (i == times - 1) throw e; }
  }
  static void six1(Cart c) { six2(c); }
  static void six2(Cart c) { six3(c); }
  static void six3(Cart c) { six4(c); }
  static void six4(Cart c) { six5(c); }
  static void six5(Cart c) { c.ownerLength(); }
  static void jobA(Cart c) { six1(c); }
  static void jobB(Cart c) { six1(c); }

  interface Body { void run() throws Throwable; }

  static void bug(String scenario, Body body) {
    try { body.run(); } catch (Throwable e) { emit(scenario, e, trace(e)); }
  }
  static String trace(Throwable e) {
    StringWriter text = new StringWriter();
    e.printStackTrace(new PrintWriter(text));
    return text.toString();
  }
  static void emit(String scenario, Throwable e, String stack) {
    System.out.println("{\"scenario\":" + quote(scenario) + ",\"type\":" + quote(e.getClass().getName())
        + ",\"message\":" + quote(String.valueOf(e.getMessage())) + ",\"stacktrace\":" + quote(stack) + "}");
  }
  static String quote(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "") + '"';
  }
  static void uncaught(String scenario, String name, Runnable task) throws Exception {
    Thread thread = new Thread(task, name);
    thread.setUncaughtExceptionHandler((t, e) ->
        emit(scenario, e, "Exception in thread \"" + t.getName() + "\" " + trace(e)));
    thread.start();
    thread.join();
  }

  public static void main(String[] args) throws Exception {
    Cart cart = new Cart();
    if (args.length > 0) bug("first", () -> proxied(Integer.parseInt(args[0])));
    bug("total", () -> cart.total(3));
    bug("total-other", () -> cart.total(77));
    bug("order-total", () -> new Order().total(3));
    bug("owner-length", cart::ownerLength);
    bug("owner-name", cart::ownerName);
    bug("cast", () -> cart.cast("text"));
    bug("cast-other", () -> cart.cast(List.of()));
    bug("walk-2", () -> cart.walk(2));
    bug("walk-60", () -> cart.walk(60));
    bug("endless", () -> cart.endless(0));
    bug("endless-deeper", () -> cart.endless(9));
    bug("endless-too", () -> cart.endlessToo(0));
    bug("prices", () -> System.out.println(Prices.FIRST));
    bug("rates", () -> System.out.println(Rates.FIRST));
    bug("charge", () -> charge("17"));
    bug("charge-other", () -> charge("ada"));
    bug("charge-lines", () -> charge("17\n\tat com.shop.Shop.refund(Shop.java:9)\nCaused by: nothing"));
    bug("refund", () -> refund("17"));
    bug("number", () -> checkout("number"));
    bug("file", () -> checkout("file"));
    bug("read-order", () -> readOrder("/srv/orders/17"));
    bug("read-order-other", () -> readOrder("/srv/orders/4711"));
    bug("read-cart", () -> readCart("/srv/orders/17"));
    bug("open-orders", () -> openOrders("jdbc:shop://db/1"));
    bug("open-orders-other", () -> openOrders("jdbc:shop://replica/2"));
    bug("open-users", () -> openUsers("jdbc:shop://db/1"));
    bug("fetch-rates", () -> fetchRates("http://127.0.0.1:1/"));
    bug("fetch-rates-other", () -> fetchRates("http://127.0.0.1:2/x"));
    bug("fetch-stock", () -> fetchStock("http://127.0.0.1:1/"));
    bug("close", () -> close("disk 1"));
    bug("close-other", () -> close("disk 2"));
    bug("sum-prices", () -> sumPrices(List.of("x")));
    bug("sum-prices-other", () -> sumPrices(List.of("1", "2", "y")));
    bug("sum-counts", () -> sumCounts(List.of("x")));
    bug("lambda-1", () -> lambda(1).run());
    bug("lambda-2", () -> lambda(2).run());
    bug("anonymous-1", () -> anonymous(1).run());
    bug("anonymous-2", () -> anonymous(2).run());
    bug("retry-1", () -> retry(1));
    bug("retry-3", () -> retry(3));
    bug("pool-stock", () -> inPool(() -> loadStock("x"), 0));
    bug("pool-stock-other", () -> inPool(() -> loadStock("y-17"), 3));
    bug("pool-price", () -> inPool(() -> loadPrice(Map.of(), "x"), 0));
    bug("joined-stock", () -> joined(() -> loadStock("x")));
    bug("joined-stock-other", () -> joined(() -> loadStock("y")));
    bug("joined-charge", () -> joined(() -> charge("17")));
    bug("wait-stock", () -> waitForStock());
    bug("wait-rates", () -> waitForRates());
    bug("proxied", () -> proxied(0));
    bug("reflect-charge", () -> reflect("charge", 1));
    bug("reflect-charge-warm", () -> reflect("charge", 40));
    bug("reflect-refund", () -> reflect("refund", 1));
    bug("job-a", () -> jobA(cart));
    bug("job-b", () -> jobB(cart));
    bug("not-found-1", () -> { throw new com.shop.users.NotFound("17"); });
    bug("not-found-2", () -> { throw new com.shop.orders.NotFound("17"); });
    uncaught("thread-1", "worker-1", () -> charge("17"));
    uncaught("thread-2", "pool-2-thread-14", () -> charge("18"));
    uncaught("thread-refund", "worker-1", () -> refund("17"));
    System.exit(0);
  }
}
