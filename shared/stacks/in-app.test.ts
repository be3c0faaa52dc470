import { expect, it } from 'vitest'
import { isInApp } from './in-app.ts'
import type { StackLanguage } from './stack.ts'

type Row = readonly [language: StackLanguage, name: string, file: string]

const IN_APP: Row[] = [
  ['javascript', 'load', 'https://shop.test/assets/app-DkJ2x9aB.js'],
  ['javascript', 'load', '/srv/app/dist/events.js'],
  ['javascript', 'load', 'https://shop.test/vendor-list.html'],
  ['javascript', 'load', 'index.android.bundle'],
  ['javascript', '', 'webpack://shop/./src/cart.ts'],
  ['java', 'com.shop.Cart.total', 'Cart.java'],
  ['java', 'org.shop.Cart.total', 'Cart.java'],
  ['java', 'io.shop.javax.Cart.total', 'Cart.kt'],
  ['python', 'total', '/srv/app/cart.py'],
  ['python', '<module>', '<string>'],
  ['go', 'main.load', '/srv/app/main.go'],
  ['go', 'shop/cart.(*Cart).Total', '/srv/shop/cart/cart.go'],
  ['go', 'log/cart.Total', '/srv/log/cart/cart.go'],
  ['go', 'github.com/acme/shop/cart.Total', '/home/anna/go/src/github.com/acme/shop/cart.go'],
  ['dotnet', 'Shop.Systems.Cart.Total', 'C:\\src\\Shop\\Cart.cs'],
  ['ruby', 'User#load', '/app/models/user.rb'],
  ['php', 'App\\Cart->total', '/srv/app/src/Cart.php'],
  ['rust', 'shop::cart::total', './src/cart.rs'],
  ['rust', '<shop::Cart as core::ops::drop::Drop>::drop', './src/cart.rs'],
]

const NOT_IN_APP: Row[] = [
  ['javascript', 'process.processTicksAndRejections', 'node:internal/process/task_queues'],
  ['javascript', 'emit', 'events.js'],
  ['javascript', 'Module._compile', 'internal/modules/cjs/loader.js'],
  ['javascript', 'Array.map', '<anonymous>'],
  ['javascript', 'forEach', '[native code]'],
  ['javascript', 'Promise.all', 'index 0'],
  ['javascript', 'Axios.request', '/srv/app/node_modules/axios/lib/core/Axios.js'],
  ['javascript', 'Axios.request', 'C:\\app\\node_modules\\axios\\lib\\core\\Axios.js'],
  ['javascript', 'next', '/app/.yarn/cache/express-npm-4.18.1-3f9a2c1b7d-8e9f0a.zip/lib/router.js'],
  ['javascript', 'mount', 'https://cdn.jsdelivr.net/npm/vue@3.4.1/dist/vue.global.js'],
  ['javascript', 'inject', 'chrome-extension://abcdefghijklmnop/content.js'],
  ['javascript', 'a', 'https://shop.test/_next/static/chunks/framework-8d5ac84b5c1b3f2d.js'],
  ['javascript', 'a', 'https://shop.test/assets/vendor-DkJ2x9aB.js'],
  ['java', 'java.util.Objects.requireNonNull', 'Objects.java'],
  ['java', 'org.springframework.web.servlet.DispatcherServlet.doDispatch', 'DispatcherServlet.java'],
  ['java', 'com.shop.Cart$$EnhancerBySpringCGLIB$$1a2b.total', '<generated>'],
  ['java', 'com.shop.Cart$$SpringCGLIB$$0.total', '<generated>'],
  ['java', 'sun.reflect.GeneratedMethodAccessor77.invoke', 'Unknown Source'],
  ['java', 'jdk.proxy2.$Proxy99.find', 'Unknown Source'],
  ['java', 'com.shop.A$ByteBuddy$aB3dE5gH.b', 'Unknown Source'],
  ['java', 'kotlinx.coroutines.DispatchedTask.run', 'DispatchedTask.kt'],
  ['python', 'get', '/srv/app/.venv/lib/python3.12/site-packages/requests/api.py'],
  ['python', 'loads', '/usr/lib/python3.11/json/__init__.py'],
  ['python', '_call', '<frozen importlib._bootstrap>'],
  ['go', 'net/http.(*Server).Serve', '/usr/local/go/src/net/http/server.go'],
  ['go', 'net/http.(*Server).Serve', 'net/http/server.go'],
  ['go', 'panic', '/usr/local/go/src/runtime/panic.go'],
  ['go', 'github.com/gin-gonic/gin.(*Context).Next', '/root/go/pkg/mod/github.com/gin-gonic/gin@v1.9.1/context.go'],
  ['go', 'shop/pb._Cart_Total_Handler', '/srv/shop/pb/cart_grpc.pb.go'],
  ['dotnet', 'System.Linq.Enumerable.First', ''],
  ['dotnet', 'Microsoft.AspNetCore.Routing.EndpointMiddleware.Invoke', ''],
  ['dotnet', 'lambda_method123', ''],
  ['ruby', 'call', '/usr/lib/ruby/gems/3.2.0/gems/rack-2.2.7/lib/rack/builder.rb'],
  ['ruby', 'each', '<internal:array>'],
  ['php', 'Illuminate\\Pipeline->then', '/srv/app/vendor/laravel/framework/src/Pipeline.php'],
  ['php', 'array_map', '[internal function]'],
  ['php', '{main}', ''],
  ['rust', 'core::panicking::panic_fmt', '/rustc/4d91de4e/library/core/src/panicking.rs'],
  ['rust', 'rust_begin_unwind', ''],
  ['rust', '<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once', ''],
  [
    'rust',
    'tokio::runtime::task::raw::poll',
    '/root/.cargo/registry/src/index.crates.io-6f17d22bba15001f/tokio-1.35.0/src/x.rs',
  ],
  ['rust', '__libc_start_main', ''],
]

const asked = ([language, name, file]: Row) => isInApp(language, { function: name, module: '', file })

it.each(IN_APP)('takes %s %s in "%s" for code of the application', (...row) => expect(asked(row)).toBe(true))

it.each(NOT_IN_APP)('does not take %s %s in "%s" for it', (...row) => expect(asked(row)).toBe(false))

it('knows packages by the module beside the function', () => {
  expect(isInApp('java', { function: 'shop.Cart.total', module: 'java.base@17.0.1', file: '' })).toBe(false)
  expect(isInApp('go', { function: '(*Server).Serve', module: 'net/http', file: 'net/http/server.go' })).toBe(false)
})
