# Runs each bug, and writes what OpenTelemetry's SDK records of it as a line of JSON.
require 'json'
require 'net/http'
require 'timeout'
require 'set'

module Shop
  class Declined < StandardError; end

  #2 # Edited:
  #2 # two lines more.
  class Cart
    def initialize = @items = []
    def total(last) = @items.fetch(last)
    def owner_name
      #2 # Edited.
      @owner.name
    end
    def owner_mail
      @owner.mail
    end
    def walk(depth) = depth.zero? ? @owner.name : walk(depth - 1)
    def endless(n) = endless(n + 1)
    def endless_too(n) = endless_too(n + 1)
    def sum(prices) = prices.sum { |price| Integer(price) }
    def max(prices) = prices.map { |price| Integer(price) }.max
  end

  class Order
    def initialize = @items = []
    def total(last) = @items.fetch(last)
  end

  module_function

  def charge(user) = raise(Declined, "no card of user #{user}")
  def refund(user) = raise(Declined, "no card of user #{user}")
  def load_stock(text) = Integer(text)
  def load_price(prices, item) = prices.fetch(item)

  def checkout(kind)
    kind == :number ? load_stock('x') : load_price({}, 'x')
  rescue ArgumentError, KeyError
    raise Declined, 'the checkout failed'
  end

  def fetch_rates(url) = Net::HTTP.get(URI(url))
  def fetch_stock(url) = Net::HTTP.get(URI(url))
  def read_order(text) = JSON.parse(text)
  def read_cart(text) = JSON.parse(text)
  def wait_stock = Timeout.timeout(0.01) { sleep }
  def wait_rates = Timeout.timeout(0.01) { sleep }
  def read_file(path) = File.read(path)
  def read_list(path) = File.read(path)
  def divide(count) = 10 / count

  def retry_stock(attempts)
    tried = 0
    begin
      tried += 1
      load_stock("attempt-#{tried}")
    rescue ArgumentError
      retry if tried < attempts
      raise
    end
  end

  define_method(:defined_price) { |item| load_price({}, item) }
  define_method(:defined_stock) { |item| load_stock(item) }
  module_function :defined_price, :defined_stock
end

def bug(scenario)
  yield
rescue Exception => e
  line = { scenario: scenario, type: e.class.to_s, message: e.message, stacktrace: e.full_message(highlight: false, order: :top) }
  puts JSON.generate(line)
end

cart = Shop::Cart.new
bug('total') { cart.total(3) }
bug('total-other') { cart.total(77) }
bug('order-total') { Shop::Order.new.total(3) }
bug('owner-name') { cart.owner_name }
bug('owner-mail') { cart.owner_mail }
bug('walk-2') { cart.walk(2) }
bug('walk-40') { cart.walk(40) }
bug('endless') { cart.endless(0) }
bug('endless-too') { cart.endless_too(0) }
bug('sum') { cart.sum(['x']) }
bug('sum-other') { cart.sum(['1', 'four']) }
bug('max') { cart.max(['x']) }
bug('charge') { Shop.charge(17) }
bug('charge-other') { Shop.charge('ada@shop.example') }
bug('charge-lines') { Shop.charge("17\n\tfrom /srv/shop/pay.rb:3:in `refund'") }
bug('refund') { Shop.refund(17) }
bug('number') { Shop.checkout(:number) }
bug('price') { Shop.checkout(:price) }
bug('rates') { Shop.fetch_rates('http://127.0.0.1:1/') }
bug('rates-other') { Shop.fetch_rates('http://127.0.0.1:2/x') }
bug('stock') { Shop.fetch_stock('http://127.0.0.1:1/') }
bug('read-order') { Shop.read_order('{no}') }
bug('read-order-other') { Shop.read_order('{"a": no}') }
bug('read-cart') { Shop.read_cart('{no}') }
bug('wait-stock') { Shop.wait_stock }
bug('wait-rates') { Shop.wait_rates }
bug('read-file') { Shop.read_file('/srv/none/17') }
bug('read-file-other') { Shop.read_file('/srv/none/4711') }
bug('read-list') { Shop.read_list('/srv/none/17') }
bug('divide') { Shop.divide(0) }
bug('retry-1') { Shop.retry_stock(1) }
bug('retry-3') { Shop.retry_stock(3) }
bug('defined-price') { Shop.defined_price('x') }
bug('defined-stock') { Shop.defined_stock('x') }
bug('thread-stock') { Thread.new { Thread.current.report_on_exception = false; Shop.load_stock('x') }.join }
bug('thread-stock-other') { Thread.new { Thread.current.report_on_exception = false; Shop.load_stock('y') }.join }
bug('thread-price') { Thread.new { Thread.current.report_on_exception = false; Shop.load_price({}, 'x') }.join }
