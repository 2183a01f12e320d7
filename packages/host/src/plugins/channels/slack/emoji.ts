/**
 * Slack names emoji by words. These are those that people and agents react with; each has the name that Slack gives it
 * first, and others that it knows it by.
 */
const names = `
👍 +1 thumbsup,👎 -1 thumbsdown,❤️ heart,🔥 fire,🎉 tada,👏 clap,🙏 pray,👌 ok_hand,✅ white_check_mark,☑️ ballot_box_with_check,✔️ heavy_check_mark,❌ x,
❗ exclamation heavy_exclamation_mark,❓ question,⚠️ warning,🚫 no_entry_sign,⛔ no_entry,👀 eyes,🤔 thinking_face,😀 grinning,😃 smiley,😄 smile,😁 grin,😂 joy,
🤣 rolling_on_the_floor_laughing,😅 sweat_smile,😊 blush,🙂 slightly_smiling_face,🙃 upside_down_face,😉 wink,😍 heart_eyes,🥰 smiling_face_with_3_hearts,😘 kissing_heart,
😎 sunglasses,🤓 nerd_face,🤩 star-struck,😐 neutral_face,😑 expressionless,🙄 face_with_rolling_eyes,😏 smirk,😴 sleeping,😮 open_mouth,😱 scream,😢 cry,😭 sob,😞 disappointed,
😡 rage,🤬 face_with_symbols_on_mouth,🤯 exploding_head,😇 innocent,🤗 hugging_face,🫡 saluting_face,🤝 handshake,💪 muscle,👋 wave,✋ hand raised_hand,🙌 raised_hands,
🤞 crossed_fingers,✌️ v,👉 point_right,👈 point_left,👆 point_up_2,👇 point_down,✍️ writing_hand,🤷 shrug,🤦 face_palm,💯 100,⭐ star,🌟 star2,✨ sparkles,⚡ zap,💡 bulb,
🚀 rocket,🏆 trophy,🎯 dart,📌 pushpin,📎 paperclip,📝 memo pencil,📅 date,⏰ alarm_clock,⏳ hourglass_flowing_sand,⌛ hourglass,🔒 lock,🔑 key,🔍 mag,🔔 bell,💬 speech_balloon,
💔 broken_heart,💙 blue_heart,💚 green_heart,💛 yellow_heart,💜 purple_heart,🖤 black_heart,🧡 orange_heart,💩 hankey poop shit,🤡 clown_face,👻 ghost,💀 skull,🤖 robot_face,
🐛 bug,🎂 birthday,🍕 pizza,☕ coffee,🍺 beer,🍻 beers,🥂 clinking_glasses,🎁 gift,🎈 balloon,🌈 rainbow,☀️ sunny,🌙 crescent_moon,❄️ snowflake,🌍 earth_africa,🆗 ok,🆒 cool,
➕ heavy_plus_sign,➖ heavy_minus_sign,🔴 red_circle,🟢 large_green_circle,🟡 large_yellow_circle,🔵 large_blue_circle,🛑 octagonal_sign,🔄 arrows_counterclockwise,🔁 repeat`
  .trim()
  .split(/,\s*/)
  .map(entry => entry.split(' '))

const byName = new Map(names.flatMap(([emoji = '', ...all]) => all.map(name => [name, emoji] as const)))
const bare = (emoji: string) => emoji.replaceAll('\ufe0f', '')
const byEmoji = new Map(names.map(([emoji = '', name = '']) => [bare(emoji), name]))

/** The emoji, or the name between colons, as people write it: workspaces have emoji of their own. */
export const emojiNamed = (name: string): string => {
  // The colour of a skin comes after two colons.
  const [plain = name] = name.split('::')
  return byName.get(plain) ?? `:${plain}:`
}

/** Slack's name of an emoji, also where it is given between colons; undefined: it is not known here. */
export const nameOfEmoji = (emoji: string): string | undefined => {
  const given = emoji.trim()
  return byEmoji.get(bare(given)) ?? /^:([\w+'-]{1,100}):$/.exec(given)?.[1]
}
