import type { Call, Rule } from '../types.ts'
import { judgeGit } from './git.ts'

const names = (list: string): ReadonlySet<string> => new Set(list.trim().split(/\s+/))

/** They talk to other machines, or can be told to. */
const network = names(`
  curl wget wget2 aria2c axel http https httpie xh curlie wscat websocat grpcurl nc ncat netcat nc.openbsd nc.traditional
  socat telnet ssh scp sftp ssh-copy-id ssh-keyscan sshpass mosh autossh rsync rclone ftp tftp lftp ncftp sftp-server
  ping ping6 fping traceroute traceroute6 tracepath mtr dig host nslookup drill whois nmap masscan arping getent
  hostname who w last finger resolvectl systemd-resolve avahi-resolve nmcli ip ifconfig route arp iptables nft
  tcpdump tshark ntpdate chronyc iperf iperf3 speedtest
  gh glab hub svn hg bzr cvs fossil darcs
  npm npx yarn yarnpkg pnpm pnpx corepack bower pip pipx uv uvx poetry pdm conda mamba easy_install twine
  apt apt-get aptitude apk yum dnf microdnf zypper pacman yay emerge brew port snap flatpak nix nix-env nix-shell nix-build
  gem bundle bundler cargo rustup go composer cpan cpanm luarocks opam stack cabal dotnet nuget pod mvn gradle
  docker docker-compose podman nerdctl buildah skopeo kubectl helm minikube crictl ctr
  aws gcloud gsutil az doctl heroku flyctl fly vercel netlify wrangler firebase s3cmd terraform tofu pulumi ansible
  ansible-playbook vault consul
  mail mailx mutt msmtp sendmail swaks s-nail mpack smbclient smbget ldapsearch showmount mount mount.nfs sshfs curlftpfs
  mysql mysqldump mariadb psql pg_dump redis-cli mongo mongosh cqlsh sqlcmd
  lynx w3m links elinks chromium chromium-browser google-chrome chrome firefox xdg-open open sensible-browser playwright
  youtube-dl yt-dlp ffmpeg ffprobe ffplay convert magick identify wg openvpn tailscale cloudflared ngrok torsocks
  proxychains proxychains4 tor gpg gpg2 dirmngr keybase irssi weechat claude codex gemini opencode ollama
`)

/** They run what they find in files, settings, their input or their arguments. */
const runsCode = names(`
  bash sh dash ash zsh ksh ksh93 mksh yash csh tcsh fish rbash elvish nu xonsh pwsh powershell busybox toybox
  python pypy ipython node nodejs deno bun tsx ts-node perl ruby irb php lua luajit tclsh wish expect guile racket sbcl
  clisp emacs emacsclient julia R Rscript octave gnuplot java jshell groovy scala kotlin erl iex elixir ghci runghc ocaml
  swift awk gawk mawk nawk original-awk sed gsed perldoc m4 dc bc jjs osascript
  vi vim nvim view ex ed rvim vimdiff nano pico joe micro kak hx less more most pg pager man info apropos
  make gmake bmake cmake ctest ninja just task rake ant meson bazel tox nox pytest jest vitest mocha tap ava
  gdb lldb strace ltrace perf valgrind rr bpftrace script scriptreplay screen tmux dtach abduco zellij
  sudo su doas pkexec runuser chroot unshare nsenter bwrap setpriv firejail capsh setsid setarch linux32 linux64 taskset
  chrt ionice numactl prlimit flock watch parallel entr inotifywait run-parts start-stop-daemon systemd-run systemctl
  service at batch crontab anacron ssh-agent dbus-send dbus-run-session gdbus busctl xterm
  tar bsdtar gtar cpio zip 7z 7za rpm dpkg dpkg-deb alien sqlite3 duckdb fd fdfind bat batcat fzf delta diff3 sdiff
  split csplit time ld.so ldd gcc g++ cc c++ clang ld as tcc groff troff nroff tex latex pdflatex xelatex lualatex pandoc
  dialog whiptail zgrep zegrep zfgrep zcat zless zmore zdiff bzgrep xzgrep ptx install-info update-alternatives
`)

/** Builtins that set aside what the text of a command says, or take it from elsewhere. */
const turnsTextIntoCode = names(`
  eval source . exec trap alias unalias enable bind complete compgen compopt mapfile readarray fc history hash let declare
  typeset local export readonly unset shopt builtin getopts caller logout suspend disown
`)

/** They change files. What they write may be run later, and what they remove is gone. */
const changesFiles = names(`
  cp mv rm rmdir unlink shred ln link install dd truncate chmod chown chgrp chattr setfacl setfattr mkfifo mknod patch
  mktemp gzip gunzip bzip2 bunzip2 xz unxz zstd unzip rename sponge umount kill killall pkill
`)

const modulesForNetwork = /^(?:http\.server|pip|ensurepip|SimpleHTTPServer|smtpd|ftplib|telnetlib|urllib.*)$/

/** What is known of a program that is not harmless. */
export function kindOf(written: string): Rule | undefined {
  // python3.12, node-20 and CURL are what they are called without the rest.
  const shorter = written.toLowerCase().replace(/[-.\d]+$/, '')
  for (const name of new Set([written, written.toLowerCase(), shorter])) {
    if (name === 'git') return judgeGit
    if (name === 'openssl') return judgeOpenssl
    if (name === 'python' || name === 'pypy') return judgePython
    if (network.has(name)) return canReachNetwork
    if (turnsTextIntoCode.has(name)) return judgeTextAsCode
    if (runsCode.has(name)) return judgeRunner
    if (changesFiles.has(name)) return writes
  }
  return undefined
}

const canReachNetwork: Rule = ({ name, judging }) => judging.note('network', `${name} can reach a network`)
const writes: Rule = ({ name, judging }) => judging.note('unknown', `${name} changes more than what is shown`)

function judgeOpenssl(call: Call) {
  if (/^(?:s_|ocsp|cmp$)/.test(call.args[0]?.text ?? '')) canReachNetwork(call)
  else call.judging.note('unknown', `${call.name} is not a program on the list`)
}

function judgePython(call: Call) {
  const [option, module] = call.args
  if (option?.text === '-m' && modulesForNetwork.test(module?.text ?? '')) canReachNetwork(call)
  else judgeRunner(call)
}

/** What it would run is judged as well where it can be seen, so that the reasons are complete. */
function judgeRunner({ name, args, judging }: Call) {
  judging.note('hidden', `${name} runs code or commands that cannot be seen here`)
  const inner = args.findIndex(
    argument => argument.text !== undefined && /^[\w./]*[a-z][\w./]*$/.test(argument.text),
  )
  const word = args[inner]
  if (word?.text !== undefined && network.has(word.text)) judging.command(args.slice(inner), 'program')
}

function judgeTextAsCode({ name, args, judging }: Call) {
  judging.note('hidden', `${name} makes the shell run or believe something that cannot be seen here`)
  if (!/^(?:eval|exec|builtin|trap)$/.test(name)) return
  const texts = args.filter(argument => !argument.text?.startsWith('-')).map(argument => argument.text)
  if (texts.every(text => text !== undefined))
    judging.script(name === 'trap' ? (texts[0] ?? '') : texts.join(' '))
}
