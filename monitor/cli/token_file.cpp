#include "cli/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "files/regular_file.h"
#include "store/server.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t file_bytes_max = 64 * 1024;

constexpr std::string_view heading =
    "# Who may do what with this monitor: a token a line, as TOKEN (of every scope) or\n"
    "# NAME SCOPE[,SCOPE] TOKEN. Scopes: read, report, act. A change takes effect within "
    "seconds.\n";

Error named_error(const std::filesystem::path& path, Error error) {
  error.message = "the token file " + path.string() + " " + error.message;
  error.field = "token_file";
  return error;
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
  const auto failed = [&] {
    const int cause = errno;
    return Error{ErrorCode::unavailable, std::string(error_about) + " " + path.string() +
                                             " cannot be made: " + std::strerror(cause)};  // NOLINT
  };
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return {};
  const auto directory = path.parent_path();
  std::filesystem::create_directories(directory.parent_path(), ignored);
  if (!directory.empty() && mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return failed();
  // Under another name first: an incomplete file is never visible, not even after a crash.
  auto draft = path.string() + "-XXXXXX";
  const int fd = mkostemp(draft.data(), O_CLOEXEC);  // mode 0600
  if (fd < 0) return failed();
  const bool written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const bool placed = written && (renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(),
                                            RENAME_NOREPLACE) == 0 ||
                                  errno == EEXIST);
  auto result = placed ? Result<void>{} : failed();
  close(fd);
  unlink(draft.c_str());
  return result;
}

Result<void> make_token_file(const std::filesystem::path& path) {
  auto made = make_owner_file(
      path, std::string(heading) + "user read,report,act " + new_secret() + "\n", "the token file");
  if (made) return made;
  return Error{made.error().code, made.error().message, "token_file"};
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
