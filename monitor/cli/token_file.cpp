// A file appears whole under its name or not at all: a draft gets the name, and replaces nothing.
// The token for hooks has a file of its own, because people and scripts read the last line of the
// token file.
#include "cli/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "files/durable_file.h"
#include "files/regular_file.h"
#include "store/place.h"
#include "store/server.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t file_bytes_max = 64 * 1024;

constexpr std::string_view heading =
    "# Who may do what with this monitor: a token a line, as TOKEN (of every scope) or\n"
    "# NAME SCOPE[,SCOPE] TOKEN. Scopes: read, report, act. A change takes effect within "
    "seconds.\n";

constexpr std::string_view report_heading =
    "# One more token of the monitor. It may report and nothing else, so hooks get it.\n";

Error named_error(const std::filesystem::path& path, Error error) {
  error.message = "the token file " + path.string() + " " + error.message;
  error.field = "token_file";
  return error;
}

/// Returns the token that may report, may not act and has the fewest scopes; null: none.
const Token* least_reporting(const std::vector<Token>& tokens) {
  const auto may_do_more = [](const Token& token) { return token.scopes.contains(Scope::read); };
  const Token* least = nullptr;
  for (const auto& token : tokens) {
    if (!token.scopes.contains(Scope::report) || token.scopes.contains(Scope::act)) continue;
    if (least == nullptr || (may_do_more(*least) && !may_do_more(token))) least = &token;
  }
  return least;
}

}  // namespace

Result<std::vector<Token>> read_token_file(const std::filesystem::path& path) {
  const auto text = read_regular_file(path, file_bytes_max, Readers::owner);
  if (!text) return named_error(path, text.error());
  auto tokens = tokens_from(*text);
  if (!tokens) {
    return named_error(path, {ErrorCode::invalid, "cannot be used: " + tokens.error().message});
  }
  return tokens;
}

Result<void> make_owner_file(const std::filesystem::path& path, const std::string& text,
                             std::string_view error_about) {
  const auto failed = [&](int cause) {
    return Error{ErrorCode::unavailable, std::string(error_about) + " " + path.string() +
                                             " cannot be made: " + std::strerror(cause)};  // NOLINT
  };
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return {};
  const auto directory = path.parent_path();
  if (const int cause = make_folders(directory, 0700); cause != 0) return failed(cause);
  // The owner of the folder can put another file there under the name of ours.
  struct stat folder {};
  if (directory == state_folder() && stat(directory.c_str(), &folder) == 0 &&
      folder.st_uid != geteuid() && folder.st_uid != 0)
    return Error{ErrorCode::invalid,
                 std::string(error_about) + " " + path.string() +
                     " is not made: its folder belongs to user " + std::to_string(folder.st_uid) +
                     ", and this process runs as user " + std::to_string(geteuid()) +
                     ". Set HOME to a folder of this user"};
  const int cause = put_file(path, text, 0600, Existing::keep);
  return cause == 0 || cause == EEXIST ? Result<void>{} : failed(cause);
}

Result<void> make_token_file(const std::filesystem::path& path) {
  auto made = make_owner_file(
      path, std::string(heading) + "user read,report,act " + new_secret() + "\n", "the token file");
  if (made) return made;
  return Error{made.error().code, made.error().message, "token_file"};
}

std::filesystem::path report_token_file(const std::filesystem::path& path) {
  return path.string() + "-report";
}

Result<std::vector<Token>> read_all_tokens(const std::filesystem::path& path) {
  auto tokens = read_token_file(path);
  if (!tokens) return tokens;
  const auto beside = report_token_file(path);
  // A folder may be read-only. Then hooks get a token that a person writes.
  (void)make_owner_file(beside,
                        std::string(report_heading) + "reporter report " + new_secret() + "\n",
                        "the token file");
  auto more = read_token_file(beside);
  if (!more && more.error().code == ErrorCode::not_found) return tokens;
  if (!more) return more.error();
  for (auto& token : *more) {
    const auto has = [&](const auto member, const std::string& value) {
      return std::ranges::find(*tokens, value, member) != tokens->end();
    };
    if (token.scopes != Scopes{Scope::report} || has(&Token::secret, token.secret)) continue;
    const auto name = token.name;
    for (int number = 2; has(&Token::name, token.name); ++number)
      token.name = name + "-" + std::to_string(number);
    tokens->push_back(std::move(token));
  }
  return tokens;
}

Result<std::string> reporting_secret(const std::filesystem::path& path) {
  const auto tokens = read_token_file(path);
  if (!tokens) return tokens.error();
  if (const auto* token = least_reporting(*tokens)) return token->secret;
  if (const auto more = read_token_file(report_token_file(path)))
    if (const auto* token = least_reporting(*more)) return token->secret;
  return Error{ErrorCode::invalid,
               "the token file " + path.string() +
                   " has no token that may report and may not act, and hooks get no other. Add a "
                   "line to the monitor's token file: hooks report TOKEN"};
}

Result<std::string> link_key(const std::filesystem::path& database) {
  constexpr std::size_t key_bytes_min = 32;
  const auto path = is_server_url(database)
                        ? folder_beside(database) / "server-link-key"
                        : std::filesystem::path(database.string() + "-link-key");
  const auto named = [&](const std::string& why) {
    return Error{ErrorCode::invalid, "the key of links " + path.string() + " " + why +
                                         "; remove it, and the monitor makes another one"};
  };
  if (auto made = make_owner_file(path, new_secret() + new_secret() + "\n", "the key of links");
      !made)
    return made.error();
  auto text = read_regular_file(path, file_bytes_max, Readers::owner);
  if (!text) return named(text.error().message);
  while (text->ends_with('\n') || text->ends_with(' ')) text->pop_back();
  if (text->size() < key_bytes_min) return named("is too short");
  return text;
}

std::string acting_secret(const std::vector<Token>& tokens) {
  const auto acts = std::ranges::find_if(
      tokens, [](const Token& token) { return token.scopes.contains(Scope::act); });
  if (acts != tokens.end()) return acts->secret;
  return tokens.empty() ? std::string() : tokens.front().secret;
}

}  // namespace watchdog::monitor
