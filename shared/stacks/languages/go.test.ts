import { expect, it } from 'vitest'
import { outlineStack } from '../../../test/support/outline-stack.ts'

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'the first goroutine of a panic that was recovered and panicked again',
    `panic: boom [recovered]
\tpanic: again
[signal SIGSEGV: segmentation violation code=0x1 addr=0x8 pc=0x6e82e8]

goroutine 1 [running]:
main.again()
\t/srv/main.go:9 +0x1
panic({0x7ed600?, 0x385e49e761f8?})
\t/usr/local/go/src/runtime/panic.go:860 +0x13a
shop/cart.(*Cart).Total(0xc0, {0x1, 0x2})
\t/srv/cart.go:1 +0x1f

goroutine 5 [select, 2 minutes]:
main.other()
\t/srv/other.go:1
exit status 2`,
    ['- panic: boom', 'shop/cart.(*Cart).Total /srv/cart.go:1'],
  ],
  [
    'a stack of debug.Stack with modules and generics',
    `goroutine 18 [running]:
runtime/debug.Stack()
\t/usr/local/go/src/runtime/debug/stack.go:24 +0x5e
main.guard.func1()
\tC:/shop/guard.go:3 +0x1
panic({0x1?, 0x2?})
\t/usr/local/go/src/runtime/panic.go:770 +0x132
main.Map[...](...)
\tshop.test/shop/map.go:261
github.com/gin-gonic/gin.(*Context).Next(...)
\t/root/go/pkg/mod/github.com/gin-gonic/gin@v1.9.1/context.go:174 +0x2b
created by main.run.func1.2 in goroutine 1
\t/srv/g.go:9 +0x1`,
    [
      '- : ',
      'main.Map[...] shop.test/shop/map.go:261',
      'github.com/gin-gonic/gin.(*Context).Next /root/go/pkg/mod/github.com/gin-gonic/gin@v1.9.1/context.go:174',
      'main.run.func1.2 /srv/g.go:9',
    ],
  ],
  [
    'errors of pkg/errors, whose cause is first',
    `root
main.load
\t/srv/main.go:12
runtime.main
\t/usr/local/go/src/runtime/proc.go:250
wrapped
main.(*T).outer.func1
\t/srv/main.go:15`,
    [
      '- : wrapped',
      'main.(*T).outer.func1 /srv/main.go:15',
      'cause : root',
      'main.load /srv/main.go:12',
      'runtime.main /usr/local/go/src/runtime/proc.go:250',
    ],
  ],
  [
    'errors of xerrors, whose cause is last',
    `outer:
    main.run
        /srv/main.go:9
  - inner:
    main.load
        /srv/main.go:5`,
    ['- : outer', 'main.run /srv/main.go:9', 'cause : inner', 'main.load /srv/main.go:5'],
  ],
  [
    'errors of go-errors, with the place first',
    `*errors.errorString boom
/srv/main.go:12 (0x4a1b2c)
\t(*T).load: return errors.New("x")
/usr/local/go/src/runtime/proc.go:250 (0x43a1b2)
\tmain: fn()`,
    ['- : *errors.errorString boom', '(*T).load /srv/main.go:12', 'main /usr/local/go/src/runtime/proc.go:250'],
  ],
]

it.each(CASES)('reads %s', (_, stack, outline) => {
  expect(outlineStack(stack)).toEqual(['go', ...outline])
})
