#include "support/secret_samples.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

namespace watchdog::test {
namespace {

constexpr std::string_view hex = "0123456789abcdef";
constexpr std::string_view upper = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr std::string_view bech32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";
constexpr std::string_view alnum = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::string_view url = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-";
constexpr std::string_view chosen =  // by people who obey rules for passwords
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#*~^+.?=_-";

struct Row {
  std::string_view before;
  std::string_view letters;
  int length;
  std::string_view after = "";
};

// clang-format off: a row is a line
constexpr Row rows[] = {
    // Published prefixes.
    {"sk-", alnum, 48},
    {"sk-proj-", url, 60},
    {"sk-ant-api03-", url, 90},
    {"sk-or-v1-", hex, 64},
    {"nvapi-", url, 64},
    {"pplx-", alnum, 48},
    {"r8_", alnum, 37},
    {"csk-", alnum, 48},
    {"fw_", alnum, 24},
    {"tvly-dev-", alnum, 32},
    {"dapi", hex, 32},
    {"ntn_", alnum, 46},
    {"shpat_", hex, 32},
    {"shpss_", hex, 32},
    {"hvs.", url, 90},
    {"hvb.", url, 100},
    {"glsa_", alnum, 32, "_0a1b2c3d"},
    {"lin_api_", alnum, 40},
    {"sbp_", hex, 40},
    {"ATATT3xFfGF0", url, 100},
    {"dckr_pat_", url, 27},
    {"figd_", url, 40},
    {"AGE-SECRET-KEY-1", bech32, 58},
    {"hf_", alnum, 34},
    {"gsk_", alnum, 52},
    {"xai-", alnum, 80},
    {"npm_", alnum, 36},
    {"pypi-AgEIcHlwaS5vcmc", url, 100},
    {"glpat-", url, 20},
    {"gldt-", url, 20},
    {"ghp_", alnum, 36},
    {"gho_", alnum, 36},
    {"ghs_", alnum, 36},
    {"github_pat_", alnum, 82},
    {"AKIA", base32, 16},
    {"ASIA", base32, 16},
    {"AIza", url, 35},
    {"GOCSPX-", url, 28},
    {"ya29.", url, 100},
    {"xoxb-1234567890-", alnum, 24},
    {"xoxp-1234567890-", hex, 32},
    {"xapp-1-A0123456-", hex, 64},
    {"https://hooks.slack.com/services/T00000000/B00000000/", alnum, 24},
    {"https://discord.com/api/webhooks/123456789012345678/", url, 68},
    {"sk_live_", alnum, 24},
    {"rk_live_", alnum, 24},
    {"whsec_", alnum, 32},
    {"SG.", url, 60},
    {"dop_v1_", hex, 64},
    {"SK", hex, 32},
    {"NRAK-", upper, 27},
    {"PMAK-", hex, 59},
    {"rubygems_", hex, 48},
    {"xkeysib-", hex, 64},
    {"pul-", hex, 40},
    {"tskey-auth-", alnum, 32},
    {"pscale_tkn_", url, 43},
    {"dt0c01.", upper, 88},
    {"123456789:AA", url, 33},                           // Telegram
    {"MTIzNDU2Nzg5MDEyMzQ1Njc4.Gabcde.", url, 38},       // Discord
    {"abc8Q~", alnum, 34},                               // Azure
    {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.", url, 43},  // JSON web token
    {"secret-token:", alnum, 20},                        // RFC 8959
    // Names with values.
    {"password=", chosen, 14},
    {"PGPASSWORD=", chosen, 14, " psql -h db"},
    {"DB_PASS=", chosen, 14},
    {"export MYSQL_PWD=", chosen, 14},
    {"password: ", chosen, 14, "\nuser: bob"},
    {"{\"password\": \"", chosen, 14, "\", \"user\": \"bob\"}"},
    {"{\"client_secret\":\"", chosen, 20, "\"}"},
    {"{'password': b'", chosen, 14, "'}"},
    {"'password' => '", chosen, 14, "',"},
    {"<password>", chosen, 14, "</password>"},
    {"Server=db;Uid=app;Pwd=", chosen, 14, ";Timeout=5"},
    {"passphrase = \"", chosen, 14, "\""},
    {"aws_secret_access_key = ", alnum, 40},
    {"DefaultEndpointsProtocol=https;AccountKey=", alnum, 86, "==;"},
    {"SECRET_KEY = '", chosen, 50, "'"},
    {"x-api-key: ", alnum, 32},
    {"api_key=", alnum, 32},
    {"GITHUB_TOKEN=", alnum, 40},
    {"token: ", hex, 40},
    {"\"access_token\":\"", url, 40, "\",\"expires_in\":3600"},
    {"//registry.npmjs.org/:_authToken=", hex, 36},
    {"{\"auth\":\"Ym", alnum, 24, "==\"}"},
    {"\"credentials\": \"bob:", alnum, 16, "\""},
    {"{\"name\":\"DB_PASSWORD\",\"value\":\"", chosen, 14, "\"}"},
    {"master_key: ", hex, 32},
    // Headers.
    {"Authorization: Bearer ", url, 40},
    {"Authorization: Basic ", alnum, 24, "=="},
    {"Authorization: Token ", hex, 40},
    {"PRIVATE-TOKEN: ", alnum, 20},
    {"Cookie: session=", url, 32, "; theme=dark"},
    {"Set-Cookie: id=", url, 32, "; Path=/; HttpOnly"},
    {"\"cookie\": \"sid=", url, 32, "\""},
    // Commands.
    {"deploy --password ", chosen, 14, " --host db"},
    {"[\"deploy\", \"--password\", \"", chosen, 14, "\"]"},
    {"gh auth --token=", alnum, 40},
    {"mysql -u root -p", alnum, 14, " shop"},
    {"mysqldump -p'", chosen, 14, "' shop"},
    {"sshpass -p ", alnum, 14, " ssh db"},
    {"docker login -u bob -p ", alnum, 14},
    {"curl -u bob:", chosen, 14, " https://example.org"},
    {"curl -H 'X-Auth-Token: ", alnum, 32, "' https://example.org"},
    {"redis-cli -a ", alnum, 14, " ping"},
    {"ALTER USER bob WITH PASSWORD '", chosen, 14, "';"},
    {"CREATE USER bob IDENTIFIED BY '", chosen, 14, "';"},
    // URLs.
    {"https://bob:", chosen, 14, "@example.org/x"},
    {"postgresql://app:p@ss/", alnum, 14, "@db.example/main"},
    {"redis://:", alnum, 14, "@cache:6379/0"},
    {"https://", hex, 32, "@sentry.example/1"},
    {"https://example.org/cb?password=", chosen, 14, "&user=bob"},
    {"https://x.blob.core.windows.net/c?sv=2022&sig=", alnum, 43, "%3D&se=1"},
    // Files.
    {"machine example.org login bob password ", chosen, 14},
    {"-----BEGIN RSA PRI"
     "VATE KEY-----\n",
     alnum, 64,
     "\n-----END RSA PRI"
     "VATE KEY-----"},
    {"-----BEGIN OPENSSH PRI"
     "VATE KEY-----\n",
     alnum, 70,
     "\n-----END OPENSSH PRI"
     "VATE KEY-----"},
    {"-----BEGIN PGP PRI"
     "VATE KEY BLOCK-----\n\n",
     alnum, 64,
     "\n-----END PGP PRI"
     "VATE KEY BLOCK-----"},
};
// clang-format on

}  // namespace

std::vector<SecretSample> secret_samples() {
  std::mt19937 random(7);
  std::vector<SecretSample> samples;
  for (const auto& row : rows) {
    std::string core;
    while (core.size() < static_cast<std::size_t>(row.length))
      core += row.letters[random() % row.letters.size()];
    core[1] = static_cast<char>('2' + random() % 6);  // programs make none without a digit
    samples.push_back({std::string(row.before) + core + std::string(row.after), core});
  }
  return samples;
}

namespace {

/// `{x}` in a template is one of these.
const std::map<char, std::vector<std::string>> words = {
    {'n', {"user", "order", "invoice", "parser", "worker", "session", "cache", "report", "index"}},
    {'v', {"load", "store", "read", "update", "delete", "render", "fetch", "validate", "refresh"}},
    {'s', {"password", "secret", "token", "api_key", "credential", "passphrase", "access_token"}},
    {'S', {"PASSWORD", "SECRET", "TOKEN", "API_KEY", "ACCESS_TOKEN", "DB_PASSWORD"}},
    {'f', {"src/auth.py", "lib/token.cpp", "web/login.tsx", "tests/test_secret.py", "cmd/main.go"}},
    {'l', {"INFO", "DEBUG", "WARN", "ERROR"}},
    {'w',
     {"quick", "basic", "digest", "missing", "expired", "stable", "bearer", "nested", "wrong"}},
    {'h', {"localhost", "127.0.0.1", "example.org", "db.internal", "api.example.com"}},
};

constexpr const char* templates[] = {
    // Code.
    "def {v}_{n}({s}: str, timeout: int = 30) -> None:\n    self.{s} = {s}\n",
    "{s} = os.environ[\"{S}\"]",
    "{s} = os.environ.get(\"{S}\", \"\")",
    "const {s} = process.env.{S};",
    "const { {s} } = await {v}{n}(config.{s});",
    "if (!{s}) throw new Error(\"{s} is required\");",
    "if (token.type == TokenType.IDENTIFIER) return parser.next();",
    "Token token = lexer.next(); // {w} token",
    "for token in tokens:\n    count[token] = count.get(token, 0) + 1",
    "tokens = tokenizer.encode(text)[:{d}]",
    "while ((token = strtok(NULL, \" ,\")) != NULL) {v}(token);",
    "auto {s} = settings.{s}();",
    "std::string_view token(std::string_view text, std::size_t at);",
    "public record Credentials(String user, String {s}) {}",
    "self.assertEqual(response.json()[\"token_type\"], \"bearer\")",
    "password = getpass.getpass(\"Password: \")",
    "password=args.password, token=args.token,",
    "{s}: Optional[str] = None",
    "{s}: string;\n{n}Id: number;",
    "@app.post(\"/{v}-token\")\nasync def {v}_token(form: Form = Depends()):",
    "SELECT id, password_hash FROM {n}s WHERE token_id = $1 LIMIT {d};",
    "ALTER TABLE {n}s ADD COLUMN {s} text NOT NULL;",
    "git diff --stat {f} # {w} {n}",
    "x = sk_learn.fit(pass_through=True, secret_santa=False)",
    "#define PASS 1\n#define {S}_LENGTH_MAX {d}",
    "- name: {S}\n  valueFrom:\n    secretKeyRef:\n      name: {n}-secrets\n      key: {n}",
    "{S}=${{S}}",
    "{S}=\"$({v}-secret {n})\"",
    "password: ${DB_PASSWORD}\ntoken: {{ .Values.token }}",
    "secret: !vault |\n  $ANSIBLE_VAULT;1.1;AES256",
    "{\"type\":\"object\",\"properties\":{\"{s}\":{\"type\":\"string\",\"maxLength\":{d}}}}",
    "<input type=\"password\" name=\"password\" autocomplete=\"current-password\">",
    // Logs.
    "2026-03-{d} 12:00:{d} {l} {n}: {v} took {d} ms, tokens: {d}, cached: true",
    "{l} token usage: prompt={d} completion={d} total={d}",
    "prompt eval time = {d}.25 ms / {d} tokens ({d}.10 ms per token, {d}.77 tokens per second)",
    "{\"usage\":{\"prompt_tokens\":{d},\"completion_tokens\":{d}},\"token_count\":{d}}",
    "{\"token\":\"Hello\",\"logprob\":-0.{d},\"top_logprobs\":[{\"token\":\" world\"}]}",
    "[{l}] {f}:{d}: {w} token: expected ';' before '}'",
    "{f}:{d}:{d}: error: unexpected token: '{n}'",
    "SyntaxError: Unexpected token < in JSON at position {d}",
    "--- PASS: Test{n} (0.{d}s)\nPASS\nok   example.org/{n}  0.{d}s",
    "PASS: tests/{n}.sh\nFAIL: tests/{w}.sh\n# pass: {d} fail: {d}",
    "{l} login of {n} refused: password incorrect, {d} attempts left",
    "401 Unauthorized: {w} credentials; see WWW-Authenticate: Basic realm=\"{n}\"",
    "error: {s}: missing",
    "Cookie policy: accepted by {d} {n}s",
    "PWD=/home/bob/{n} OLDPWD=/tmp SHELL=/bin/bash",
    "GET /api/{n}s/{u}?page={d}&sort=token HTTP/1.1\" 200 {d}",
    "sha256:{x} {n}.tar.gz",
    "commit {g}\nAuthor: Bob <bob@example.org>\n\n    {v} the {w} {n}",
    "id={u} trace={x} span={n}",
    "docker pull ghcr.io/{n}/app@sha256:{x}",
    ("\"integrity\": \"sha512-{b}==\",\n\"resolved\": "
     "\"https://registry.npmjs.org/{n}/-/{n}-1.{d}.0.tgz\""),
    // Prose.
    "The {w} password is stored as a hash; a token: something that a program shows.",
    "Enter your password:",
    "Password: must be at least {d} characters",
    "A basic understanding of the {n} is enough. Basic authentication: see RFC 7617.",
    "Bearer authentication needs a token, and the {s} must not be in the {n}.",
    "Set `{S}` or pass `--{s}-file FILE`; the {s} is {w}.",
    "Usage: {v} [options] <user> <password>\n  --password PASSWORD  the password of the {n}",
    "  --token string   token of the {n} (default: $TOKEN)",
    "Use --password to give it, or --{s} <{s}>.",
    "| {s} | string | the {w} {n} |",
    "Please {v} the {n}, then tell me how far you are. I pass the {w} ones on.",
    "A secret: the {n} is older than the {w} {n}.",
    // Commands and URLs.
    "curl -sS http://{h}:8080/{n}s/{d} | jq '.token_count'",
    "mysql -u root -p {n} < dump.sql",
    "ssh -p 2222 git@{h} {v}",
    "tar -xzf {n}.tar.gz -C /opt",
    "docker run -p 8080:80 -e {S} {n}:latest",
    "psql -h {h} -U {n} -p 5432 {n}",
    "git clone git@github.com:{n}/{w}.git && git clone ssh://git@{h}/{n}.git",
    "http://{h}:8080/{n}/a@b",
    "https://{h}/{n}s/{u}/tokens?limit={d}#pass",
    "https://user@{h}/{n}.git",
    "mailto:bob@{h}",
    "npm run {v} -- --grep token",
    "kubectl get secret {n} -o jsonpath='{.data}'",
    "export PATH=$PATH:/opt/{n}/bin",
};

std::string filled(std::string_view text, std::mt19937& random) {
  const auto many = [&](std::string_view letters, int length) {
    std::string made;
    while (length-- > 0) made += letters[random() % letters.size()];
    return made;
  };
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_slot = at + 2 < text.size() && text[at] == '{' && text[at + 2] == '}';
    const auto found = is_slot ? words.find(text[at + 1]) : words.end();
    if (found != words.end()) {
      result += found->second[random() % found->second.size()];
    } else if (is_slot && text[at + 1] == 'd') {
      result += std::to_string(10 + random() % 90);
    } else if (is_slot && text[at + 1] == 'x') {
      result += many(hex, 64);
    } else if (is_slot && text[at + 1] == 'g') {
      result += many(hex, 40);
    } else if (is_slot && text[at + 1] == 'b') {
      result += many(alnum, 86);
    } else if (is_slot && text[at + 1] == 'u') {
      result += many(hex, 8) + "-" + many(hex, 4) + "-4" + many(hex, 3) + "-a" + many(hex, 3) +
                "-" + many(hex, 12);
    } else {
      result += text[at];
      continue;
    }
    at += 2;
  }
  return result;
}

/// Pieces of a dozen lines of this project's own files, but not of its tests.
std::vector<std::string> pieces_of_files() {
  namespace fs = std::filesystem;
  const std::set<std::string> kinds{".cpp",  ".h",   ".md",  ".json", ".js",    ".py",
                                    ".html", ".css", ".sql", ".yaml", ".cmake", ".txt"};
  std::set<fs::path> files;
  for (const auto* folder : {"libwatchdog", "monitor", "clients", "schemas"})
    for (const auto& file : fs::recursive_directory_iterator(fs::path(PROJECT_ROOT) / folder))
      if (file.is_regular_file() && kinds.contains(file.path().extension())) files.insert(file);
  std::vector<std::string> pieces;
  for (const auto& file : files) {
    std::ifstream lines(file);
    std::string piece;
    int count = 0;
    for (std::string line; std::getline(lines, line);) {
      piece += line + "\n";
      if (++count % 12 == 0) pieces.push_back(std::move(piece)), piece.clear();
    }
  }
  return pieces;
}

}  // namespace

std::vector<std::string> harmless_texts(std::size_t count) {
  std::mt19937 random(11);
  const auto pieces = pieces_of_files();
  std::vector<std::string> texts;
  while (texts.size() < count) {
    texts.push_back(texts.size() % 4 == 0 && !pieces.empty()
                        ? pieces[random() % pieces.size()]
                        : filled(templates[random() % std::size(templates)], random));
  }
  return texts;
}

}  // namespace watchdog::test
