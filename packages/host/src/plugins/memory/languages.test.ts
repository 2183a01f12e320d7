import { expect, test } from 'vitest'
import { openMemory } from './testing/open.ts'

/** Notes as people write them, each with what they might look for it by. */
const notes: Record<string, { text: string; found: readonly string[]; not?: readonly string[] }> = {
  'german-compound': {
    text: 'Der Krankenversicherungsbeitrag steigt im Januar auf 412 Euro.',
    found: [
      'Versicherung',
      'Krankenversicherung',
      'beitrag',
      'KRANKENVERSICHERUNGSBEITRÄGE',
      'versicherungsbeitrag',
    ],
  },
  'german-part': {
    text: 'Die Autowerkstatt in der Lindenstraße öffnet um acht.',
    found: ['strasse', 'Werkstatt'],
  },
  english: {
    text: 'Two reminders are set for the dentist.',
    found: ['reminder', 'reminders', 'REMIND', 'dentists'],
  },
  french: {
    text: 'Rendez-vous au café près du château.',
    found: ['cafe', 'CAFÉ', 'cafe\u0301', 'cafés', 'chateau'],
  },
  turkish: { text: 'Toplantı İstanbul’da yapılacak.', found: ['istanbul', 'ISTANBUL', 'toplanti'] },
  finnish: { text: 'Kokous pidetään Helsingissä talossamme.', found: ['talo', 'talossa', 'Helsingissa'] },
  russian: { text: 'Ёлка стоит в гостиной у Наташи.', found: ['елка', 'ёлки', 'гостиная', 'Наташ'] },
  greek: { text: 'Το σπίτι είναι στην ΟΔΟΣ ΕΡΜΟΥ.', found: ['οδός', 'σπιτι', 'Ερμού'] },
  'arabic-bare': { text: 'كتاب سارة على الطاولة', found: ['الكِتَابُ', 'كِتاب', 'بالكتاب', 'طاولة', 'ساره'] },
  'arabic-vowels': {
    text: 'وَالْمَدْرَسَةُ تَفْتَحُ أَبْوَابَهَا فِي السَّاعَةِ الثَّامِنَة',
    found: ['مدرسة', 'المدرسة', 'بالمدرسة', 'الساعة', 'ابوابها'],
  },
  hebrew: { text: 'הַפְּגִישָׁה עִם דָּנָה בְּיוֹם שְׁלִישִׁי', found: ['פגישה', 'הפגישה', 'דנה'] },
  persian: { text: 'او می‌خواهد به تهران برود ۱۴۰۵', found: ['میخواهد', 'تهران', '1405'] },
  chinese: {
    text: '用户的医疗保险将于明年三月到期，请提前提醒他续保。',
    found: ['医疗', '保险', '医疗保险', '三月', '提醒', '续', '医疗保险什么时候到期？'],
    not: ['猫', '保安'],
  },
  'chinese-traditional': { text: '張小姐喜歡喝烏龍茶，不加糖。', found: ['烏龍茶', '喜歡', '小姐'] },
  japanese: {
    text: '田中さんの誕生日は五月三日です。ケーキはチョコレートが好きです。',
    found: ['誕生日', 'チョコ', 'ﾁｮｺﾚｰﾄ', '田中', 'ケーキ'],
    not: ['ゲーム'],
  },
  korean: { text: '회의는 서울역 근처에서 열립니다.', found: ['회의', '서울', '근처'] },
  thai: { text: 'คุณแม่ต้องต่อประกันสุขภาพภายในเดือนหน้า', found: ['ประกัน', 'สุขภาพ', 'ประกันสุขภาพ', 'แม่'] },
  khmer: { text: 'ខ្ញុំចូលចិត្តកាហ្វេទឹកដោះគោ', found: ['កាហ្វេ', 'ទឹកដោះគោ'] },
  hindi: { text: 'मुझे नीली किताब पसंद है और चाय भी।', found: ['किताब', 'चाय', 'किताबें'] },
  tamil: { text: 'அம்மாவின் பிறந்தநாள் ஜூன் மாதம்', found: ['பிறந்தநாள்', 'அம்மா'] },
  vietnamese: { text: 'Họp nhóm ở quán cà phê lúc chín giờ.', found: ['ca phe', 'họp nhóm'] },
  emoji: { text: 'Her favourites: 🍕 and 🇮🇹', found: ['🍕', '🇮🇹', '🍕️'] },
  code: { text: 'Run npm ci --omit=dev in packages/host_api first.', found: ['host_api', 'omit', 'npm ci'] },
}

test('what was saved in any script is found by its words, parts and other forms', async () => {
  const { group } = openMemory()
  const agent = group('languages')
  await Promise.all(Object.entries(notes).map(([key, { text }]) => agent.save(`note ${key}`, text)))
  const wrong: string[] = []
  for (const [key, { found, not = [] }] of Object.entries(notes)) {
    for (const query of found) {
      const [first] = await agent.keys(query)
      if (first !== `note ${key}`) wrong.push(`${query} finds ${first}`)
    }
    for (const query of not)
      if ((await agent.keys(query)).includes(`note ${key}`)) wrong.push(`${query} finds ${key}`)
  }
  expect(wrong).toEqual([])
})

test('the word itself comes before words that hold it, and those before nothing', async () => {
  const { group } = openMemory()
  const agent = group('order')
  await agent.save('inside', 'Krankenversicherungsbeitrag')
  await agent.save('itself', 'Die Versicherung heißt Allgemeine.')
  await agent.save('other', 'Das Fahrrad steht im Keller.')
  await agent.save('inside too', 'Haftpflichtversicherung und Rechtsschutz')
  const [first, ...others] = await agent.keys('Versicherung')
  expect(first).toBe('itself')
  expect(others.sort()).toEqual(['inside', 'inside too'])
})

test('more of the words, rarer words and words in the key come first', async () => {
  const { group } = openMemory()
  const agent = group('rank')
  for (let i = 0; i < 30; i++) await agent.save(`tea ${i}`, 'The user drinks tea in the morning.')
  await agent.save('anna', 'Anna likes the morning.')
  await agent.save('both', 'Anna drinks tea.')
  expect((await agent.keys('anna tea')).slice(0, 2)).toEqual(['both', 'anna'])
  await agent.save('lisbon', 'The flat is by the river.')
  await agent.save('trip', 'They went to Lisbon in May and stayed there.')
  expect(await agent.keys('Lisbon')).toEqual(['lisbon', 'trip'])
})

test('a word that nearly all memories have, and a query of a thousand words, are answered', async () => {
  const { group } = openMemory()
  const agent = group('common')
  await Promise.all(
    Array.from({ length: 3000 }, (_, i) => agent.save(`k${i}`, `user number n${i} common plain`)),
  )
  expect(await agent.keys('user')).toHaveLength(5)
  expect((await agent.keys('user common n1234 plain'))[0]).toBe('k1234')
  expect((await agent.keys('the user common n7'))[0]).toBe('k7')
  const long = Array.from({ length: 600 }, (_, i) => `n${i}`).join(' ')
  expect(await agent.keys(long, { limit: 50 })).toHaveLength(50)
  expect(await agent.keys('猫'.repeat(2000))).toEqual([])
})
