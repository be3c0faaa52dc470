import { describe, expect, it } from 'vitest'
import { normalizeFile } from './normalize-file.ts'
import { normalizeFunction } from './normalize-function.ts'
import { normalizeMessage, normalizeName } from './normalize-message.ts'
import type { StackLanguage } from './stack.ts'

describe('a file', () => {
  it.each([
    ['https://cdn.test/assets/app.3f9a2c1b.js', 'assets/app.*.js'],
    ['https://cdn.test/assets/index-DkJ2x9aB.js?v=2#x', 'assets/index-*.js'],
    ['https://cdn.test/assets/index-a_-Bx9dK.js', 'assets/index-*.js'],
    ['https://cdn.test/assets/index-dkjxxabb.js', 'assets/index-*.js'],
    ['https://cdn.test/assets/index-legacy-DkJ2x9aB.js', 'assets/index-legacy-*.js'],
    ['https://cdn.test/chunk-2Q7LQXJH.js', 'chunk-*.js'],
    ['https://cdn.test/_nuxt/CrIxeNgb.js', '_nuxt/*.js'],
    ['https://cdn.test/_app/immutable/nodes/2.DkJ2x9aB.js', '_app/immutable/nodes/2.*.js'],
    ['app:///main.8d7e3f9a2c1b44aa.chunk.js', 'main.*.chunk.js'],
    ['https://cdn.test/js/main.3f9a2.js', 'js/main.*.js'],
    ['https://cdn.test/js/main-88aa2c.js', 'js/main-*.js'],
    ['https://cdn.test/main.deadbeef.js', 'main.*.js'],
    ['https://cdn.test/_next/static/chunks/4bd1b696-8d5ac84b5c1b3f2d.js', '_next/static/chunks/*.js'],
    ['https://cdn.test/_next/static/Zk3vQ2pXx_7cR8s1dTq9a/_buildManifest.js', '_next/static/*/_buildManifest.js'],
    ['https://cdn.test/3f9a2c1/app.js', '*/app.js'],
    ['https://cdn.test/abcdefab/app.js', '*/app.js'],
    ['https://cdn.test/v1.2.3-beta.1/app.js', '*/app.js'],
    ['https://cdn.jsdelivr.net/npm/vue@3.4.1/dist/vue.global.js', 'npm/vue@*/dist/vue.global.js'],
    ['https://cdn.test/js/jquery-3.6.0.min.js', 'js/jquery-*.min.js'],
    ['blob:https://shop.test/9115d58c-aaaa-bbbb-cccc-111122223333', '*'],
    ['/app/node_modules/.pnpm/express@4.18.1/node_modules/express/lib/router.js', 'express/lib/router.js'],
    ['/app/.yarn/cache/express-npm-4.18.1-3f9a2c1b7d-8e9f0a.zip/node_modules/express/lib/r.js', 'express/lib/r.js'],
    ['/usr/lib/ruby/gems/3.2.0/gems/rack-2.2.7/lib/rack/builder.rb', 'rack-*/lib/rack/builder.rb'],
    ['/home/anna/.venv/lib/python3.11/site-packages/x/a.py', 'x/a.py'],
    ['/usr/lib/python3.12/json/decoder.py', 'json/decoder.py'],
    ['/tmp/ipykernel_123/4567.py', 'tmp/*.py'],
    ['/var/containers/Bundle/Application/9115D58C-AAAA-BBBB-CCCC-111122223333/App.app/main.jsbundle', 'main.jsbundle'],
    ['/data/app/~~Zk3vQ2pXx7cR==/com.shop-aB3vQ2pXx7cR==/base.apk', 'com.shop-*/base.apk'],
    ['node:internal/process/task_queues', 'node:internal/process/task_queues'],
    ['webpack://shop/./src/cart/total.ts?1a2b', 'cart/total.ts'],
    ['../../src/cart/total.ts', 'cart/total.ts'],
    ['<anonymous>', '<anonymous>'],
    ['', ''],
  ])('%s is %s in every release', (file, normalized) => expect(normalizeFile(file)).toBe(normalized))

  it('is equal wherever the application is', () => {
    const places = [
      '/srv/shop',
      '/app',
      '/home/anna/code/shop',
      '/home/runner/work/shop/shop',
      'C:\\Users\\anna\\shop',
      '/usr/src/app',
    ]
    const releases = ['/srv/shop/releases/20260304120000', '/var/www/shop/current', '/opt/shop', '/Users/anna/src/shop']
    const files = [...places, ...releases].map(place => normalizeFile(`${place}/models/user.rb`))
    expect([...new Set(files)]).toEqual(['models/user.rb'])
  })

  it.each([
    'pages/404.js',
    'pages/500.js',
    'assets/wizard-step1form.js',
    'assets/page-MyWidget.js',
    'assets/page-UserList.js',
    'src/user-settings.js',
    'src/polyfills-es2015.js',
    'src/oauth2callback.js',
    'src/HttpRequest.js',
    'src/my-tab-view.js',
    'src/base64.js',
  ])('%s has no hash', file => expect(normalizeFile(`https://shop.test/${file}`)).toBe(file))
})

describe('a function', () => {
  const NAMES: Record<StackLanguage, [string, string][]> = {
    javascript: [
      ['Object.load', 'load'],
      ['new Cart', 'Cart'],
      ['async load', 'load'],
      ['Cart.total [as sum]', 'Cart.total'],
      ['Cart.<anonymous>', ''],
      ['outer/inner', 'inner'],
      ['outer/<', ''],
      ['total$1', 'total'],
      ['_callee2$', ''],
    ],
    java: [
      ['com.shop.Cart$$EnhancerBySpringCGLIB$$1a2b.total', 'com.shop.Cart.total'],
      ['com.shop.Cart$$FastClassBySpringCGLIB$$77.invoke', 'com.shop.Cart.invoke'],
      ['com.shop.Cart$$SpringCGLIB$$0.total', 'com.shop.Cart.total'],
      ['com.shop.Cart$ByteBuddy$aB3dE5gH.total', 'com.shop.Cart.total'],
      ['com.shop.Cart$HibernateProxy$x1.total', 'com.shop.Cart.total'],
      ['com.shop.Cart_$$_jvst1a2_0.total', 'com.shop.Cart.total'],
      ['com.shop.Cart$$Lambda$14/0x0000000800c03000.run', 'com.shop.Cart$$Lambda.run'],
      ['com.sun.proxy.$Proxy12.find', '$Proxy.find'],
      ['jdk.proxy3.$Proxy42.find', '$Proxy.find'],
      ['sun.reflect.GeneratedMethodAccessor123.invoke', 'sun.reflect.GeneratedMethodAccessor.invoke'],
      ['java.lang.invoke.LambdaForm$MH/0x0000000800c03000.invoke', 'java.lang.invoke.LambdaForm$MH.invoke'],
      ['com.shop.Cart.lambda$main$0', 'com.shop.Cart.lambda$main$'],
      ['com.shop.Cart$run$2.invokeSuspend', 'com.shop.Cart$run$.invokeSuspend'],
      ['com.shop.Cart$.$anonfun$run$1$adapted', 'com.shop.Cart$.$anonfun$run$'],
      ['java.base@17.0.1/java.util.Objects.requireNonNull', 'java.util.Objects.requireNonNull'],
      ['app//com.shop.Cart.total', 'com.shop.Cart.total'],
      ['Script27.run', 'Script.run'],
      ['Cart$_total_closure3.doCall', 'Cart$_total_closure.doCall'],
      ['com.shop.V2Cart.total2', 'com.shop.V2Cart.total2'],
    ],
    dotnet: [
      ['Shop.Cart.<Load>d__12.MoveNext', 'Shop.Cart.Load'],
      ['Shop.Cart.<>c__DisplayClass5_0.<Load>b__0', 'Shop.Cart.Load'],
      ['Shop.Cart.<>c.<Load>b__5_0', 'Shop.Cart.Load'],
      ['Shop.Cart.<>c__DisplayClass0_0.<<Load>b__0>d.MoveNext', 'Shop.Cart.Load'],
      ['Shop.Cart.<Load>g__Inner|5_0', 'Shop.Cart.Load.Inner'],
      ['Shop.Repository`1.Load[T]', 'Shop.Repository.Load'],
      ['lambda_method123', 'lambda_method'],
    ],
    python: [['<lambda>', '<lambda>']],
    ruby: [
      ['block (2 levels) in load', 'load'],
      ['rescue in block in Cart#load', 'Cart#load'],
      ['_app_views_cart_show_html_erb___1234567_890', '_app_views_cart_show_html_erb'],
    ],
    php: [
      ['class@anonymous /srv/app/Foo.php:12$1a3.run', 'class@anonymous.run'],
      ['App\\Cart->total', 'App.Cart.total'],
      ['App\\Cart::total', 'App.Cart.total'],
      ['App\\Cart->{closure:App\\Cart::total():12}', 'App.Cart.{closure}'],
      ['App\\Cart->App\\{closure}', 'App.Cart.{closure}'],
    ],
    go: [
      ['main.load.func1.2', 'main.load.func'],
      ['main.(*Cart).Total-fm', 'main.(*Cart).Total'],
      ['main.sum[...]', 'main.sum'],
      ['github.com/shop/cart/v2.Total', 'github.com/shop/cart.Total'],
    ],
    rust: [
      ['shop::cart::total::h0123456789abcdef', 'shop::cart::total'],
      ['shop::cart::total::{{closure}}::{{closure}}', 'shop::cart::total'],
      ['shop::cart::total::{closure#0}', 'shop::cart::total'],
      ['shop[1a2b3c4d5e6f7a8b]::total', 'shop::total'],
    ],
  }
  const rows = Object.entries(NAMES).flatMap(([language, names]) => names.map(name => [language, ...name] as const))

  it.each(rows)('of %s: %s is %s in every build', (language, name, normalized) => {
    expect(normalizeFunction(language as StackLanguage, name)).toBe(normalized)
  })
})

describe('a message', () => {
  it.each([
    ['order 17 took 3.5 s', 'order # took # s'],
    ['user usr_8f3kd92 of 0f7c1b1e-8d4f-4f0e-9a57-6a1f7c7d2f11', 'user # of #'],
    ['"a" and \'b c\' and `d`', '# and # and #'],
    ["can't read property 'x' of it", "can't read property # of it"],
    ["it's, 'quoted", "it's, 'quoted"],
    ["invalid name 'it's'", 'invalid name #'],
    ['value "a\\"b" bad', 'value # bad'],
    ['“anna”, „berta“ or «clara»', '# or #'],
    ['0xdeadbeef at 12:30:01Z', '# at #'],
    ['lock deadbeef held', 'lock # held'],
    ['expired at Mon Jan 05 10:00:00 UTC', 'expired at #'],
    ['expired on 5 January 2026', 'expired on #'],
    ['this May fail', 'this May fail'],
    ['GET https://api.test/users/anna failed', 'GET # failed'],
    ['no mail for anna@shop.test.', 'no mail for #.'],
    ['cannot open /home/anna/report.pdf: gone', 'cannot open #: gone'],
    ['cannot open C:\\Users\\anna\\a.txt', 'cannot open #'],
    ['read/write of application/json', 'read/write of application/json'],
    ['bad input {"name":"anna","ids":[1,2]}', 'bad input #'],
    ['[ERR_INVALID_ARG] bad [1, 2, 3]', '[ERR_INVALID_ARG] bad #'],
    ['token abcDEFghiJKLmno= invalid', 'token # invalid'],
    ['NullPointerException in getConnectionTimeoutMillis', 'NullPointerException in getConnectionTimeoutMillis'],
    ['Straße12 nicht gefunden', '# nicht gefunden'],
    ['Loading chunk 123 failed. (https://s.test/123.aa.js)', 'Loading chunk # failed. (#)'],
    ['Unexpected token { in JSON', 'Unexpected token { in JSON'],
    ['one\n\ntwo\nthree', 'one\ntwo'],
  ])('%s becomes %s', (message, normalized) => expect(normalizeMessage(message)).toBe(normalized))

  it('keeps the status of a response', () => {
    const failed = (status: number) => normalizeMessage(`Request failed with status code ${status}`)
    expect(failed(404)).not.toBe(failed(500))
  })
})

it.each([
  ['GET /users/123', 'GET /users/#'],
  ['publish order-1234', 'publish order-#'],
  ['GET /users/0f7c1b1e-8d4f-4f0e-9a57-6a1f7c7d2f11/cart', 'GET /users/#/cart'],
  ['GET /api/v2/carts', 'GET /api/v2/carts'],
  ["SELECT * FROM carts WHERE id = 17 AND name = 'x'", 'SELECT * FROM carts WHERE id = # AND name = #'],
  ['Http2Error', 'Http2Error'],
])('the name %s becomes %s', (name, normalized) => expect(normalizeName(name)).toBe(normalized))
