import { expect, it } from 'vitest'
import { outlineStack } from '../../../test/support/outline-stack.ts'

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'an error that was not caught, with the place that threw',
    `PHP Fatal error:  Uncaught InvalidArgumentException: user anna
is unknown in /srv/app/Foo.php:3
Stack trace:
#0 /srv/app/Bar.php(12): App\\Foo->load('anna): x(', Array)
#1 [internal function]: {closure:App\\Bar::run():12}(1)
#2 /srv/app/index.php(5): array_map(Object(Closure), Array)
#3 {main}
  thrown in /srv/app/Foo.php on line 3`,
    [
      '- InvalidArgumentException: user anna\nis unknown',
      'App\\Foo->load /srv/app/Foo.php:3',
      '{closure:App\\Bar::run():12} /srv/app/Bar.php:12',
      'array_map ',
      '{main} /srv/app/index.php:5',
    ],
  ],
  [
    'an exception as a string, with the ones before it',
    `PDOException: gone in /srv/app/Db.php:9
Stack trace:
#0 /srv/app/Foo.php(4): App\\Db->read()
#1 {main}

Next RuntimeException in /srv/app/Foo.php:6
Stack trace:
#0 /srv/app/index.php(5): App\\Foo->load()
#1 {main}`,
    [
      '- RuntimeException: ',
      'App\\Foo->load /srv/app/Foo.php:6',
      '{main} /srv/app/index.php:5',
      'cause PDOException: gone',
      'App\\Db->read /srv/app/Db.php:9',
      '{main} /srv/app/Foo.php:4',
    ],
  ],
  [
    'an exception of the main script, also of evaluated code',
    "Exception: ev in /srv/a.php(14) : eval()'d code:1\nStack trace:\n#0 {main}",
    ['- Exception: ev', "{main} /srv/a.php(14) : eval()'d code:1"],
  ],
  [
    'getTraceAsString',
    "#0 /srv/app/Bar.php(12): App\\Foo->load('anna')\n#1 {main}",
    ['- : ', 'App\\Foo->load /srv/app/Bar.php:12', '{main} /srv/app/Bar.php:12'],
  ],
  [
    'the format of the OpenTelemetry SDK',
    `App.NotFound: anna
 at App.Foo.load(Foo.php:12)
 at {main}(index.php:5)
Caused by: PDOException: gone
 at PDO.query(Unknown Source)
 ... 2 more`,
    ['- App.NotFound: anna', 'App.Foo.load Foo.php:12', '{main} index.php:5', 'cause PDOException: gone', 'PDO.query '],
  ],
]

it.each(CASES)('reads %s', (_, stack, outline) => {
  expect(outlineStack(stack)).toEqual(['php', ...outline])
})

it('reads nothing from lists', () => {
  expect(outlineStack('#0 first\n#1 second(3): x')).toEqual(['none'])
})
