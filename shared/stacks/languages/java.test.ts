import { expect, it } from 'vitest'
import { outlineStack } from '../../../test/support/outline-stack.ts'

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'causes before what was suppressed, with its own cause',
    `java.lang.IllegalStateException: m
\tat com.shop.A.b(A.java:1)
\tSuppressed: java.io.IOException: disk
\t\tat com.shop.C.close(C.java:2)
\t\t... 1 more
\tCaused by: java.lang.Error: under
\t\tat com.shop.D.x(D.java:3)
Caused by: java.util.concurrent.TimeoutException
\tat com.shop.R.r(R.kt:4)
\t... 1 more
Caused by: [CIRCULAR REFERENCE: java.lang.IllegalStateException: m]`,
    [
      '- java.lang.IllegalStateException: m',
      'com.shop.A.b A.java:1',
      'cause java.util.concurrent.TimeoutException: ',
      'com.shop.R.r R.kt:4',
      'suppressed java.io.IOException: disk',
      'com.shop.C.close C.java:2',
      'suppressed java.lang.Error: under',
      'com.shop.D.x D.java:3',
    ],
  ],
  [
    'the root cause first, with modules, archives and a hidden class',
    `java.lang.NumberFormatException: x
\tat java.base@17.0.1/java.lang.Integer.parseInt(Integer.java:1)
\tat app//com.shop.Stock.load(Stock.java:2)
\t... 3 common frames omitted
Wrapped by: com.shop.Declined: y
\tat com.shop.Shop.pay(Shop.java:5) ~[shop-1.0.jar:1.0]
\tat com.shop.A$$Lambda/0x000001.run(Unknown Source) [classes/:na]`,
    [
      '- com.shop.Declined: y',
      'com.shop.Shop.pay Shop.java:5',
      'com.shop.A$$Lambda/0x000001.run Unknown Source',
      'cause java.lang.NumberFormatException: x',
      'java.lang.Integer.parseInt Integer.java:1',
      'com.shop.Stock.load Stock.java:2',
    ],
  ],
  [
    'a message with lines of a stack',
    `java.lang.Error: line 1
\tat com.fake.M.m(M.java:1)
more
Caused by: nothing
\tat com.shop.A.b(A.java:1)
\tat com.shop.Spec.is zero(Spec.kt:2)`,
    [
      '- java.lang.Error: line 1\nat com.fake.M.m(M.java:1)\nmore\nCaused by: nothing',
      'com.shop.A.b A.java:1',
      'com.shop.Spec.is zero Spec.kt:2',
    ],
  ],
  [
    'only the first of two stacks',
    `Exception in thread "main" Boom: m
\tat MainKt.main(Main.kt:3)
\tat MainKt.main(Main.kt)
java.lang.Error: n
\tat MainKt.other(Main.kt:4)`,
    ['- Boom: m', 'MainKt.main Main.kt:3', 'MainKt.main Main.kt'],
  ],
  [
    'a log of Android',
    `FATAL EXCEPTION: main
Process: com.shop, PID: 12
java.lang.RuntimeException: x
\tat a.b.c(SourceFile:12)
\tat a.d(Unknown Source:4)
\t(Coroutine boundary)
\tat java.lang.reflect.Method.invoke(Native Method)`,
    [
      '- java.lang.RuntimeException: x',
      'a.b.c SourceFile:12',
      'a.d Unknown Source:4',
      'java.lang.reflect.Method.invoke Native Method',
    ],
  ],
]

it.each(CASES)('reads %s', (_, stack, outline) => {
  expect(outlineStack(stack)).toEqual(['java', ...outline])
})
