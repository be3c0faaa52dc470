import { expect, it } from 'vitest'
import { outlineStack } from '../../../test/support/outline-stack.ts'

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'an aggregate and the causes of its members',
    `Unhandled exception. System.AggregateException: Several (a) (b)\r
 ---> System.ArgumentException: a\r
   at S.A.B[T](T x, Int32& y) in C:\\s (1)\\a.cs:line 3\r
   --- End of inner exception stack trace ---\r
   at S.P.Main()\r
 ---> (Inner Exception #1) System.IO.IOException: b\r
 ---> System.Net.Sockets.SocketException (111): deep\r
   at S.Deep.<Load>d__12.MoveNext()\r
   --- End of inner exception stack trace ---\r
   at S.Q.<>c__DisplayClass5_0.<Run>b__0(Func\`2 f)<---\r
`,
    [
      '- System.AggregateException: Several (a) (b)',
      'S.P.Main ',
      'cause System.ArgumentException: a',
      'S.A.B[T] C:\\s (1)\\a.cs:3',
      'member System.IO.IOException: b',
      'S.Q.<>c__DisplayClass5_0.<Run>b__0 ',
      'cause System.Net.Sockets.SocketException: deep',
      'S.Deep.<Load>d__12.MoveNext ',
    ],
  ],
  [
    'German',
    `System.Exception: weg
   bei Shop.A.Load(String a) in C:\\src\\A.cs:Zeile 5.
--- Ende der Stapelüberwachung vom vorhergehenden Ort ---
   bei lambda_method123(Closure , Object )`,
    ['- System.Exception: weg', 'Shop.A.Load C:\\src\\A.cs:5', 'lambda_method123 '],
  ],
  [
    'French, with both exceptions in one line',
    `System.Exception: x ---> System.IO.IOException: y
   à Shop.A.Load() dans C:\\A.cs:ligne 5
   --- Fin de la trace de la pile d'exception interne ---
   à Shop.B.Run()`,
    ['- System.Exception: x', 'Shop.B.Run ', 'cause System.IO.IOException: y', 'Shop.A.Load C:\\A.cs:5'],
  ],
  [
    'Chinese',
    `System.Exception: x
   在 Shop.A.Load() 位置 C:\\A.cs:行号 5`,
    ['- System.Exception: x', 'Shop.A.Load C:\\A.cs:5'],
  ],
  [
    'Mono',
    `System.Exception: x
  at Shop.A.Load (System.String a) [0x00012] in <3f1a>:0 
  at Shop.A.Run () [0x00001] in /s/A.cs:5 `,
    ['- System.Exception: x', 'Shop.A.Load ', 'Shop.A.Run /s/A.cs:5'],
  ],
  [
    'a message with lines of a stack',
    `System.Exception: x
   at Fake.M.M()
Client: y
   at Shop.A.Load()
Number: 17`,
    ['- System.Exception: x\nat Fake.M.M()\nClient: y', 'Shop.A.Load '],
  ],
  [
    'Unity, and offsets in place of files',
    `NullReferenceException: x
Cart.Total (System.Int32 a) (at Assets/Cart.cs:12)
  at Shop.A.Load() in Shop.dll:token 0x6000001+0x2
  at Program.total@12.Invoke(Unit unitVar0) + 0x1f`,
    ['- NullReferenceException: x', 'Cart.Total Assets/Cart.cs:12', 'Shop.A.Load ', 'Program.total@12.Invoke '],
  ],
]

it.each(CASES)('reads %s', (_, stack, outline) => {
  expect(outlineStack(stack)).toEqual(['dotnet', ...outline])
})
