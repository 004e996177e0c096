// Secrets are compared by their digests in constant time, and with all tokens, so the time shows
// neither length nor place. A login is a name, an expiry and their HMAC under the token's secret,
// so nothing is stored for it. Browsers send cookies to all ports of a host; the cookie's name
// comes from the secret too, so two monitors do not overwrite each other's. One wrong line makes
// the whole text unusable: a token is never dropped in silence.
#include "api/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <set>
#include <span>
#include <stdexcept>

namespace watchdog::monitor {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

constexpr std::size_t secret_bytes_max = 1'024;
constexpr std::size_t name_bytes_max = 64;
constexpr std::string_view cookie_prefix = "watchdog-";

const unsigned char* bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());  // NOLINT: OpenSSL's own type
}

Digest digest(std::string_view text) {
  Digest made{};
  SHA256(bytes(text), text.size(), made.data());
  return made;
}

Digest signature(std::string_view key, std::string_view text) {
  Digest made{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes(text), text.size(),
       made.data(), nullptr);
  return made;
}

std::string hex(const Digest& digest, std::size_t count = SHA256_DIGEST_LENGTH) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto byte : std::span(digest).first(count)) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

/// Both through a digest, so that neither length nor common beginnings show in the time it takes.
bool same(std::string_view one, std::string_view other) {
  return CRYPTO_memcmp(digest(one).data(), digest(other).data(), SHA256_DIGEST_LENGTH) == 0;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= name_bytes_max &&
         std::ranges::all_of(text, [](unsigned char c) {
           return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-';
         });
}

/// The part before `end`, which is removed with it.
std::string_view read_until(std::string_view& text, char end) {
  const auto at = std::min(text.find(end), text.size());
  const auto part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const auto word = line.substr(0, std::min(line.find_first_of(" \t\r"), line.size()));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

Result<Token> token_from(const std::vector<std::string_view>& words) {
  Token token{.name = "user", .scopes = Scopes::all(), .secret = std::string(words.back())};
  if (words.size() == 3) {
    token.name = words[0];
    token.scopes = {};
    for (auto left = words[1]; !left.empty();) {
      const auto scope = named<Scope>(read_until(left, ','));
      if (!scope) return Error{ErrorCode::invalid, "the scopes are read, report and act"};
      token.scopes.add(*scope);
    }
  } else if (words.size() != 1) {
    return Error{ErrorCode::invalid, "it must be TOKEN, or NAME SCOPE[,SCOPE] TOKEN"};
  }
  // Those two names mean callers without a token of a file.
  if (!is_name(token.name) || token.name == "local" || token.name == "environment") {
    return Error{ErrorCode::invalid,
                 "a name is made of letters, digits, _ and -, and not local or environment"};
  }
  if (auto fit = check_secret(token.secret); !fit) return fit.error();
  return token;
}

/// The parts of a cookie.
struct Claim {
  std::string_view name;
  std::string_view expiry_text;  ///< As it is signed.
  WallTime expiry{};
  std::string_view proof{};
};

std::string signed_part(const Claim& claim) {
  return "login\n" + std::string(claim.name) + "\n" + std::string(claim.expiry_text);
}

/// Returns the claim of a cookie NAME=VALUE; nothing: it has not our form.
std::optional<Claim> claim_in(std::string_view cookie) {
  (void)read_until(cookie, '=');
  Claim claim{.name = read_until(cookie, '.'), .expiry_text = read_until(cookie, '.')};
  claim.proof = cookie;
  std::int64_t seconds = 0;
  const auto text = claim.expiry_text;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  constexpr auto seconds_max =
      std::chrono::duration_cast<std::chrono::seconds>(WallTime::duration::max());
  if (read.ec != std::errc{} || read.ptr != end || seconds > seconds_max.count() || seconds < 0)
    return std::nullopt;
  claim.expiry = WallTime{std::chrono::seconds(seconds)};
  return claim;
}

const Token* named_token(const std::vector<Token>& tokens, std::string_view name) {
  const auto token = std::ranges::find(tokens, name, &Token::name);
  return token == tokens.end() ? nullptr : &*token;
}

}  // namespace

Result<void> check_secret(std::string_view secret) {
  if (secret.size() < secret_bytes_min || secret.size() > secret_bytes_max) {
    return Error{ErrorCode::invalid, "a token has " + std::to_string(secret_bytes_min) + " to " +
                                         std::to_string(secret_bytes_max) +
                                         " characters, so that nobody guesses it; this one has " +
                                         std::to_string(secret.size())};
  }
  if (!std::ranges::all_of(secret, [](unsigned char c) { return c > 0x20 && c < 0x7F; })) {
    return Error{ErrorCode::invalid, "a token is made of visible ASCII characters"};
  }
  return {};
}

Result<std::vector<Token>> tokens_from(std::string_view text) {
  std::vector<Token> tokens;
  for (int line = 1; !text.empty(); ++line) {
    const auto words = words_of(read_until(text, '\n'));
    if (words.empty() || words.front().starts_with('#')) continue;
    auto token = token_from(words);
    if (token && std::ranges::any_of(tokens, [&](const Token& other) {
          return other.name == token->name || other.secret == token->secret;
        })) {
      token = Error{ErrorCode::invalid, "another line has the same name or token"};
    }
    if (!token) {
      return Error{ErrorCode::invalid,
                   "line " + std::to_string(line) + ": " + token.error().message};
    }
    tokens.push_back(std::move(*token));
  }
  if (tokens.empty()) return Error{ErrorCode::invalid, "it holds no token"};
  return tokens;
}

std::string new_secret() {
  Digest random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    throw std::runtime_error("the machine gives no random bytes");
  }
  return hex(random);
}

bool is_random(std::string_view secret) {
  constexpr std::size_t different_min = 10;
  const bool is_hex = std::ranges::all_of(
      secret, [](unsigned char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!is_hex || secret.size() != std::size_t{2} * SHA256_DIGEST_LENGTH) return false;
  return std::set<char>(secret.begin(), secret.end()).size() >= different_min;
}

std::uint64_t short_digest(std::string_view text) {
  const auto whole = digest(text);
  std::uint64_t made = 0;
  std::memcpy(&made, whole.data(), sizeof made);
  return made;
}

const Token* find_token(const std::vector<Token>& tokens, std::string_view secret) {
  const Token* found = nullptr;
  for (const auto& token : tokens) {
    if (same(token.secret, secret)) found = &token;
  }
  return found;
}

std::string login_cookie(const Token& token, WallTime expiry) {
  const auto seconds = std::to_string(
      std::chrono::duration_cast<std::chrono::seconds>(expiry.time_since_epoch()).count());
  const auto part = signed_part({.name = token.name, .expiry_text = seconds});
  return std::string(cookie_prefix) + hex(signature(token.secret, "cookie"), 4) + "=" + token.name +
         "." + seconds + "." + hex(signature(token.secret, part));
}

std::vector<std::string_view> login_cookies(const std::vector<Token>& tokens,
                                            std::string_view cookies, WallTime now) {
  std::vector<std::string_view> found;
  while (!cookies.empty()) {
    auto cookie = read_until(cookies, ';');
    cookie.remove_prefix(std::min(cookie.find_first_not_of(' '), cookie.size()));
    if (!cookie.starts_with(cookie_prefix)) continue;
    const auto claim = claim_in(cookie);
    if (claim && claim->expiry > now && named_token(tokens, claim->name) != nullptr)
      found.push_back(cookie);
  }
  return found;
}

const Token* signer_of(const std::vector<Token>& tokens, std::string_view cookie) {
  const auto claim = claim_in(cookie);
  const auto* token = claim ? named_token(tokens, claim->name) : nullptr;
  const bool is_own =
      token != nullptr && same(claim->proof, hex(signature(token->secret, signed_part(*claim))));
  return is_own ? token : nullptr;
}

Login login_in(const std::vector<Token>& tokens, std::string_view cookies, WallTime now) {
  for (auto cookie : login_cookies(tokens, cookies, now)) {
    if (const auto* token = signer_of(tokens, cookie))
      return {.token = token, .cookie = std::string(read_until(cookie, '='))};
  }
  return {};
}

}  // namespace watchdog::monitor
