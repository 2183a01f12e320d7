/**
 * Text that gives orders to whatever reads it. People write "ignore what I said"; they hardly ever write to a program
 * that its earlier instructions no longer hold. The words are compared without accents, case, and characters nobody
 * sees; three orders of the words cover the languages below.
 */
interface Words {
  /** to ignore */
  ignore: string
  /** earlier, all, your */
  which: string
  /** instructions */
  what: string
}

const languages: Readonly<Record<string, Words>> = {
  english: {
    ignore:
      '(?<!not |never |n.t |cannot )(?:ignor(?:e|ing|ed)|disregard(?:ed)?|forget|override|overridden|bypass|supersede[ds]?|discard)',
    which: 'previous|prior|above|earlier|preceding|foregoing|all\\b|any\\b|your\\b|every\\b|system',
    what: 'instruction|prompt|rules|guideline|directive|constraints|programming',
  },
  german: {
    ignore:
      'ignorier|vergiss|vergessen sie|missachte|beachte nicht|beachten sie nicht|ubergeh|setze dich uber',
    which: 'vorherig|bisherig|obig|alle|deine|ihre|vorangegangen|vorangehend|fruher|zuvor',
    what: 'anweisung|instruktion|regeln|vorgabe|befehl|prompt|richtlinie',
  },
  french: {
    ignore:
      '(?:ignore[zrs]?|oublie[zrs]?|neglige[zrs]?)\\b(?! pas| jamais)|tien[sz]? pas compte|tenez pas compte',
    which: 'precedent|ci-dessus|toutes|tous|anterieur|tes|vos',
    what: 'instruction|consigne|regles|directive|invite',
  },
  spanish: {
    ignore: '(?<!no )(?:ignora|olvida|omite|descarta)|caso omiso',
    which: 'anterior|previa|todas|todos|arriba|tus|sus',
    what: 'instruccion|reglas|indicacion|directriz|directrices|ordenes',
  },
  italian: {
    ignore: '(?<!non )(?:ignora|dimentica|trascura|scorda)',
    which: 'precedent|tutte|tutti|sopra|tue|vostre|anterior',
    what: 'istruzion|regole|direttiv|indicazion|prompt',
  },
  portuguese: {
    ignore: '(?<!nao )(?:ignor[ae]|esqueca|esquece|desconsider[ae])',
    which: 'anterior|previa|todas|todos|acima|suas|tuas',
    what: 'instruc|regras|diretriz|orientac|comandos',
  },
  dutch: {
    ignore: 'negeer|vergeet|sla over|schenk geen aandacht',
    which: 'vorige|eerdere|alle|bovenstaande|voorgaande|je|jouw|uw',
    what: 'instructie|regels|opdrachten|aanwijzing|richtlijn',
  },
  polish: {
    ignore: 'zignoruj|ignoruj|zapomnij|pomin|odrzuc',
    which: 'poprzedni|wczesniejsz|wszystki|powyzsz|swoj|twoj',
    what: 'instrukcj|polecen|zasad|wytyczn',
  },
  turkish: {
    ignore: 'yok say|gormezden gel|unut|dikkate alma|goz ardi et',
    which: 'onceki|tum|yukaridaki|butun|daha once',
    what: 'talimat|yonerge|kural|komut|istem',
  },
  russian: {
    ignore: 'игнорируи|забудь|не обращаи внимания|отбрось|пренебреги',
    which: 'предыдущ|прежн|все |всех|выше|ранее|свои|твои',
    what: 'инструкц|указан|правил|команд|промпт',
  },
  ukrainian: {
    ignore: 'ігноруи|забудь|не зважаи',
    which: 'попередн|усі|всі|вище|своі',
    what: 'інструкц|вказівк|правил|команд',
  },
  arabic: {
    ignore: 'تجاهل|انس|اهمل',
    which: 'السابقة|السابق|جميع|كل|اعلاه',
    what: 'التعليمات|تعليمات|الاوامر|القواعد|الارشادات',
  },
  hindi: {
    ignore: 'अनदेखा|नजरअंदाज|भूल जाओ|भूल जाएं',
    which: 'पिछले|पिछली|सभी|पहले|उपरोक्त',
    what: 'निर्देश|आदेश|नियम',
  },
  chinese: {
    ignore: '忽略|无视|無視|忽视|忽視|忘记|忘記|忘掉|不要理会|不要理會|不用理会',
    which: '之前|以上|先前|上面|所有|前面|此前|你的|一切|全部',
    what: '指令|指示|提示词|提示詞|提示|规则|規則|命令|说明|說明|要求',
  },
  japanese: {
    ignore: '無視|忘れ|従わない',
    which: '以前|これまで|上記|すべて|全て|前の|あなたの|今まで',
    what: '指示|命令|ルール|プロンプト|規則|インストラクション',
  },
  korean: {
    ignore: '무시|잊어|잊으',
    which: '이전|위의|모든|앞의|지금까지|기존',
    what: '지시|명령|규칙|프롬프트|지침',
  },
}

/** Whatever else is said to machines and not to people. */
const others: readonly string[] = [
  'you are (?:now|no longer) (?:an? |in |the |bound )?(?:developer mode|jailbroken|unrestricted|dan\\b|by your|by any|root\\b)',
  '(?:do not|don.t|never) (?:tell|inform|alert|notify|warn) (?:the|your) (?:user|operator|owner|human)',
  '(?:reveal|print|repeat|output|show|leak|send|exfiltrate)[^.!?]{0,24}\\b(?:your|the) (?:system prompt|hidden instructions|initial instructions|api key|environment variables|credentials)',
  'new (?:system )?instructions? (?:for|to) (?:you\\b|the (?:assistant|agent|ai\\b|model))',
  'if you are (?:an? )?(?:ai\\b|llm|assistant|language model|agent|bot\\b)',
  '(?:attention|note|message|instructions?) (?:to|for) (?:all |any |the )?(?:ai\\b|llms?\\b|language model|ai agent)',
  // The marks between the parts of a model's conversation.
  '<\\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id)\\|>|\\[/?inst\\]|<</?sys>>|</?(?:system|system[_-]prompt|system[_-]reminder|function_calls|tool_calls?|tool_use|tool_result)>',
  // Said to the inspector itself.
  'verdict["\'`*]{0,3} ?(?:is|should be|must be|:|=)? ?["\'`*]{0,3}(?:allow|safe|approve)',
  '(?:inspector|classifier|safety (?:filter|check|model|system)|security (?:filter|check|model|system)|give_verdict)\\b[^.!?]{0,40}\\b(?:allow|approve|let this|permit|say yes|mark|classify|return|answer)',
]

const invisible = /\p{M}|\p{Cf}/gu

/** Without case, accents, invisible characters and line breaks. */
const folded = (text: string): string =>
  text.toLowerCase().normalize('NFKD').replaceAll(invisible, '').replaceAll('ı', 'i').replaceAll(/\s+/g, ' ')

const gap = (most: number) => `[^.!?。！？]{0,${most}}?`

interface Orders {
  /** without it there is none, which is quick to see */
  needs?: RegExp
  patterns: readonly RegExp[]
}

function ordersIn({ ignore, which, what }: Words): Orders {
  // Where words have spaces between them, "all" is not a part of "really".
  const word = (words: string) => (/^[\x20-\x7e]*$/.test(words) ? `\\b(?:${words})` : `(?:${words})`)
  const [i, w, n] = [word(folded(ignore)), word(folded(which)), word(folded(what))]
  return {
    needs: new RegExp(n, 'u'),
    patterns: [
      new RegExp(`${i}${gap(30)}${w}${gap(16)}${n}`, 'u'),
      new RegExp(`${i}${gap(30)}${n}${gap(20)}${w}`, 'u'),
      new RegExp(`${w}${gap(16)}${n}${gap(40)}${i}`, 'u'),
    ],
  }
}

const orders: readonly Orders[] = [
  ...Object.values(languages).map(ordersIn),
  { patterns: others.map(source => new RegExp(source, 'u')) },
]

/**
 * Letters that have no shape, and marks that nobody sees in a row: a model reads words from them. Flags of regions are
 * made of such letters too.
 */
const unseen =
  /(?<!\u{1f3f4}[\u{e0020}-\u{e007e}]{0,8})[\u{e0020}-\u{e007e}]|\p{Variation_Selector}{3}|[\u200b\u200c\u2060\ufeff]{8}/u

/** Whether a text gives orders to the machine that reads it. */
export function givesOrders(text: string): boolean {
  if (unseen.test(text)) return true
  const plain = folded(text)
  return orders.some(
    ({ needs, patterns }) =>
      (needs === undefined || needs.test(plain)) && patterns.some(pattern => pattern.test(plain)),
  )
}
