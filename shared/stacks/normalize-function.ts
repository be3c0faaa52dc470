import type { StackLanguage } from './stack.ts'

/** Names longer than this are cut. */
const MAX_LENGTH = 512

type Replacement = readonly [pattern: RegExp, replacement: string]

/** Replacements for the parts of names that compilers, virtual machines and libraries generate. */
const REPLACEMENTS: Record<StackLanguage, readonly Replacement[]> = {
  javascript: [
    [/ \[as [^\]]*\]$/, ''],
    [/^(?:async|new|get|set|static) /, ''],
    [/^(?:async|promise|setTimeout handler|setInterval handler|EventListener\.handleEvent|EventHandlerNonNull)\*/, ''],
    [/^(?:Object|Function|Module|Window|Global|global|globalThis|self|exports|module\.exports)\.(?=.)/, ''],
    [/^\w{1,2}\.(?=.)/, ''],
    [/\.prototype\./, '.'],
    // Gecko names a function by the ones around it: `outer/inner`, and without a name `outer/<`.
    [/^.*\//, ''],
    [/^.*<$/, ''],
    [/^(?:.*\.)?<anonymous>$|^(?:anonymous|\?|\(anonymous\)|(?:module|global|eval) code)$/, ''],
    [/^_callee\d*\$?$|\$\d+$/, ''],
  ],
  java: [
    [/\/(?:0x)?[0-9a-f]{6,}(?=\.|$)/, ''],
    [/^[^ (]*\//, ''],
    [/\$\$(?:EnhancerBy|FastClassBy|KeyFactoryBy|SpringCGLIB|EnhancerBySpringCGLIB)\w*\$\$\w+/g, ''],
    [/\$\$Lambda[^.]*/g, '$$$$Lambda'],
    [/\$(?:ByteBuddy|HibernateProxy|HibernateInstantiator|MockitoMock|auxiliary)\$\w+/g, ''],
    [/_\$\$_(?:jvst|javassist)\w*/g, ''],
    [/^(?:com\.sun\.proxy|jdk\.proxy\d+)\./, ''],
    [/\$Proxy\d+/g, '$$Proxy'],
    [/(Accessor|LambdaForm\$[A-Z]+)\d+/g, '$1'],
    [/\$adapted$/, ''],
    [/\b(Script|_closure)\d+/g, '$1'],
    [/(?<=_closure)\d+/g, ''],
    [/[$-]\d+(?=\$|\.|-|$)/g, '$$'],
  ],
  dotnet: [
    [/`\d+/g, ''],
    [/\[[^\]]*\]/g, ''],
    // A lambda, a local function, an iterator or an async method belongs to the method between the brackets.
    [/<<(\w*)>[a-z]__[\d_]*>d(?:__\d+)?[.+]MoveNext/g, '$1'],
    [/<>c(?:__DisplayClass[\d_]+)?(?:<[^>]*>)?[.+]/g, ''],
    [/<(\w*)>[a-z]__(\w+)\|[\d_]+/g, '$1.$2'],
    [/<(\w*)>[a-z]__[\d_]*(?:[.+]MoveNext)?/g, '$1'],
    [/^lambda_method\d*/, 'lambda_method'],
    [/\+/g, '.'],
  ],
  python: [],
  ruby: [
    [/^(?:(?:block|rescue|ensure)(?: \(\d+ levels\))? in )+/, ''],
    [/_{2,}\d+_\d+$/, ''],
  ],
  php: [
    [/@anonymous.*?(?=(?:->|::|\.)\w+$|$)/s, '@anonymous'],
    [/\{closure:.*$/, '{closure}'],
    [/(?:\w+\\)+\{closure\}/, '{closure}'],
    [/\\|->|::/g, '.'],
  ],
  go: [
    [/\[[^\]]*\]/g, ''],
    [/-fm$/, ''],
    [/(?:\.func\d+|\.gowrap\d+|\.deferwrap\d+|-range\d+|\.\d+)+$/, '.func'],
    [/\/v\d+(?=[/.])/, ''],
  ],
  rust: [
    [/::h[0-9a-f]{16}$/, ''],
    [/\[[0-9a-f]{8,}\]/g, ''],
    [/(?:::\{\{?closure[^}]*\}\}?)+/g, ''],
    [/\{impl#\d+\}/g, '{impl}'],
    [/^<([\w:]+)>::/, '$1::'],
  ],
}

/** Returns the name of a function without what changes between builds and runs. It is empty for an anonymous function. */
export function normalizeFunction(language: StackLanguage, name: string): string {
  let normalized = name.slice(0, MAX_LENGTH).trim()
  for (const [pattern, replacement] of REPLACEMENTS[language]) normalized = normalized.replace(pattern, replacement)
  return normalized
}
