/**
 * The agent of the groups bob and clock. For each message (w…) it sends one of its own with a request id that the next
 * run would give it, too, and then answers; for each scheduled run (t…) it leaves a line in its folder. What the host
 * quotes of earlier turns in its notices is not said to it again.
 */
const script = `
set -e
text=$(sed '/^<system_notices>/,/^<\\/system_notices>/d')
said=
for word in $(printf '%s' "$text" | grep -o '[wt][0-9]\\{5\\}' | sort -u); do
  case $word in
    w*)
      file=/workspace/ipc/tasks/$word
      printf '{"version":1,"id":"own-%s","type":"send_message","payload":{"text":"own %s"}}' $word $word > $file.part
      mv $file.part $file.json
      ;;
    t*) echo $word >> ticks ;;
  esac
  said="$said $word"
done
echo "heard$said"
`
export const agentCommand: readonly string[] = ['/bin/sh', '-c', script]
