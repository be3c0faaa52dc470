/** An exception with the text of its stack, as the runtime of its language prints it. */
export interface Exception {
  readonly type: string
  readonly message: string
  readonly stack: string
}

const POOL =
  'HikariPool-1 - Connection is not available, request timed out after 30003ms (total=10, active=10, idle=0, waiting=37)'
/** Java: no connection is free. */
export const JAVA: Exception = {
  type: 'java.sql.SQLTransientConnectionException',
  message: POOL,
  stack: `java.sql.SQLTransientConnectionException: ${POOL}
	at com.zaxxer.hikari.pool.HikariPool.createTimeoutException(HikariPool.java:686)
	at com.zaxxer.hikari.pool.HikariPool.getConnection(HikariPool.java:179)
	at com.zaxxer.hikari.HikariDataSource.getConnection(HikariDataSource.java:100)
	at example.shop.orders.OrderRepository.insert(OrderRepository.java:84)
	at example.shop.orders.OrderService.place(OrderService.java:141)
	at example.shop.orders.OrderController.post(OrderController.java:52)
	at java.base/java.lang.reflect.Method.invoke(Method.java:580)
	at java.base/java.lang.Thread.run(Thread.java:1583)
Caused by: java.net.SocketTimeoutException: Connect timed out
	at java.base/sun.nio.ch.NioSocketImpl.timedFinishConnect(NioSocketImpl.java:546)
	at org.postgresql.core.PGStream.createSocket(PGStream.java:260)
	... 11 more`,
}

const CHARGE = 'the acquirer did not answer within 5.0 s'
/** Python: the acquirer does not answer. */
export const PYTHON: Exception = {
  type: 'payment.errors.ChargeFailed',
  message: CHARGE,
  stack: `Traceback (most recent call last):
  File "/app/payment/acquirer.py", line 61, in charge
    response = self._session.post(self._url("/charges"), json=body, timeout=5.0)
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/usr/local/lib/python3.12/site-packages/requests/sessions.py", line 637, in post
    return self.request("POST", url, data=data, json=json, **kwargs)
  File "/usr/local/lib/python3.12/site-packages/requests/adapters.py", line 713, in send
    raise ReadTimeout(e, request=request)
requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='acquirer.example', port=443): Read timed out.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/payment/routes.py", line 34, in post_charge
    charge = acquirer.charge(order.total, card)
  File "/app/payment/acquirer.py", line 68, in charge
    raise ChargeFailed(f"the acquirer did not answer within {TIMEOUT} s") from error
payment.errors.ChargeFailed: ${CHARGE}`,
}

/** Go: a panic that the interceptor of the server has recovered. */
export const GO: Exception = {
  type: 'runtime.boundsError',
  message: 'runtime error: index out of range [3] with length 3',
  stack: `goroutine 4711 [running]:
runtime/debug.Stack()
	/usr/local/go/src/runtime/debug/stack.go:26 +0x5e
example.com/shop/inventory/internal/stock.(*Shelf).Reserve(0xc0001b2000, {0xc0002a4120, 0x9}, 0x4)
	/src/internal/stock/shelf.go:118 +0x2b4
example.com/shop/inventory/internal/server.(*Server).Reserve(0xc00011c3c0, {0xd2b4f8, 0xc000310f90}, 0xc0003d2180)
	/src/internal/server/server.go:73 +0x1f5
google.golang.org/grpc.(*Server).processUnaryRPC(0xc0001ae000, {0xd2b4f8, 0xc000310ea0}, 0xc0002e0180)
	/go/pkg/mod/google.golang.org/grpc@v1.75.0/server.go:1394 +0xe2b`,
}

const SALE = 'Sequence contains no elements'
/** .NET: a sale has no price. `ILogger` exports it as a log record. */
export const DOTNET: Exception = {
  type: 'System.InvalidOperationException',
  message: SALE,
  stack: `System.InvalidOperationException: ${SALE}
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at System.Linq.Enumerable.First[TSource](IEnumerable\`1 source)
   at Shop.Pricing.Sales.PriceOf(String sku, DateTimeOffset at) in /src/Pricing/Sales.cs:line 41
   at Shop.Pricing.QuoteEndpoint.Handle(QuoteRequest request, CancellationToken cancellation) in /src/Pricing/QuoteEndpoint.cs:line 27
   at Microsoft.AspNetCore.Routing.EndpointMiddleware.<Invoke>g__AwaitRequestTask|7_0(Endpoint endpoint, Task requestTask, ILogger logger)`,
}

const UPSTREAM = 'orders answered 500 to POST /v1/orders'
/** Node: another service has failed. */
export const NODE: Exception = {
  type: 'UpstreamError',
  message: UPSTREAM,
  stack: `UpstreamError: ${UPSTREAM}
    at Upstream.check (file:///srv/gateway/dist/upstream.js:48:13)
    at async Upstream.request (file:///srv/gateway/dist/upstream.js:31:5)
    at async postOrder (file:///srv/gateway/dist/routes/orders.js:22:20)
    at async Object.handle (file:///srv/gateway/dist/router.js:77:9)`,
}
