// `alerts setup` asks what the kind of a channel needs, by the table of kinds, and writes it. A
// secret goes into a file of its own, mode 0600, beside the settings; the settings get a block at
// their end, so their comments and their form stay. The new settings are read before they are
// trusted: if they are refused, the old file comes back. Then a test message goes out.
#include "cli/alerts_setup.h"

#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/endpoint.h"
#include "cli/monitor.h"
#include "cli/token_file.h"
#include "cli/usage.h"
#include "config/channel_kind.h"
#include "facts/ids.h"
#include "setup/config_file.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

/// The lines of a channel's block, and the secrets that go into files.
struct ChannelDraft {
  std::vector<std::pair<std::string, std::string>> fields;  ///< Key and text.
  std::vector<std::pair<fs::path, std::string>> secrets;    ///< File and content.
};

const ChannelKind* kind_named(const std::string& name) {
  const auto found = std::ranges::find(channel_kinds, name, &ChannelKind::name);
  return found == channel_kinds.end() ? nullptr : &*found;
}

/// These URLs are themselves the permission to send.
bool has_secret_url(const ChannelKind& kind) {
  return kind.format == AlertFormat::slack || kind.format == AlertFormat::discord ||
         kind.format == AlertFormat::teams;
}

/// Switches the terminal's echo off while it lives.
class HiddenInput {
 public:
  HiddenInput() {
    is_set_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    auto now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    if (is_set_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &now);
  }
  ~HiddenInput() {
    if (is_set_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;

 private:
  termios before_{};
  bool is_set_ = false;
};

/// Asks once; nothing at the end of the input.
std::optional<std::string> answer_to(const std::string& question, bool hidden = false) {
  print(question + ": ");
  std::fflush(stdout);
  std::string line;
  std::optional<HiddenInput> without_echo;
  if (hidden) without_echo.emplace();
  if (!std::getline(std::cin, line)) return {};
  if (hidden) print_line("");
  while (line.ends_with(' ') || line.ends_with('\r')) line.pop_back();
  return line;
}

/// Asks until there is an answer; an optional question takes an empty one.
Result<std::string> asked(const std::string& question, Need need, bool hidden = false) {
  while (true) {
    const auto answer =
        answer_to(need == Need::may ? question + " (empty: none)" : question, hidden);
    if (!answer) return Error{ErrorCode::cancelled, "the input ended before all was answered"};
    if (!answer->empty() || need == Need::may) return *answer;
  }
}

/// Fills what the command line did not give.
Result<void> ask_for_rest(const ChannelKind& kind, AlertsSetup& setup) {
  const auto fill = [](std::string& field, std::string_view question, Need need,
                       bool hidden) -> Result<void> {
    if (need == Need::no || !field.empty()) return {};
    auto answer = asked(std::string(question), need, hidden);
    if (!answer) return answer.error();
    field = std::move(*answer);
    return {};
  };
  const bool by_default = !kind.url_default.empty();
  if (setup.url_file.empty() && !by_default)
    if (auto done = fill(setup.url, kind.url_help, kind.url, has_secret_url(kind)); !done)
      return done;
  if (auto done = fill(setup.to, kind.to_help, kind.to, false); !done) return done;
  if (kind.type == ChannelType::command && setup.command.empty()) {
    auto program = asked("path of the program", Need::must);
    if (!program) return program.error();
    setup.command = {std::move(*program)};
  }
  // A signature is for programs of one's own.
  if (setup.content.empty()) {
    const auto answer =
        answer_to("may messages hold texts of sessions: questions, commands, errors, tasks? [y/N]");
    if (!answer) return Error{ErrorCode::cancelled, "the input ended before all was answered"};
    if (answer->starts_with('y') || answer->starts_with('Y')) setup.content = "preview";
  }
  const bool wants_secret =
      kind.secret == Need::must ||
      (kind.secret == Need::may && kind.secret_help != "key that signs the body");
  if (wants_secret && setup.secret_file.empty())
    return fill(setup.secret, kind.secret_help, kind.secret, true);
  return {};
}

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

ChannelDraft draft_of(const ChannelKind& kind, const AlertsSetup& setup, const fs::path& folder) {
  ChannelDraft draft;
  const auto put = [&](const char* key, const std::string& text) {
    if (!text.empty()) draft.fields.emplace_back(key, toml_text(text));
  };
  const auto put_secret = [&](const char* key, const fs::path& file, const std::string& secret) {
    if (!file.empty()) return put(key, fs::absolute(file).string());
    if (secret.empty()) return;
    const auto own = folder / ("alerts-" + setup.name + "-" + key);
    draft.secrets.emplace_back(own, secret + "\n");
    put(key, own.string());
  };
  if (kind.type != ChannelType::webhook) put("type", std::string(name_of(kind.type)));
  if (kind.type == ChannelType::webhook) put("format", std::string(name_of(kind.format)));
  if (has_secret_url(kind) || !setup.url_file.empty()) {
    put_secret("url_file", setup.url_file, setup.url);
  } else {
    put("url", setup.url);
  }
  put("to", setup.to);
  put("from", setup.from);
  put("ca_file", setup.ca_file.string());
  put("content", setup.content);
  put_secret("secret_file", setup.secret_file, setup.secret);
  if (!setup.command.empty()) {
    std::string list;
    for (const auto& word : setup.command) list += (list.empty() ? "" : ", ") + toml_text(word);
    draft.fields.emplace_back("command", "[" + list + "]");
  }
  return draft;
}

std::string block_of(const std::string& name, const ChannelDraft& draft) {
  std::string block = "\n[alerts.channels." + name + "]\n";
  for (const auto& [key, text] : draft.fields) block.append(key).append(" = ").append(text) += '\n';
  return block;
}

/// Writes the secrets and the settings, and removes both if the settings are refused.
Result<Settings> written_settings(const ConfigFile& before, const std::string& text,
                                  const ChannelDraft& draft, const std::string& name) {
  std::vector<fs::path> made;
  const auto roll_back = [&] {
    std::error_code ignored;
    for (const auto& file : made) fs::remove(file, ignored);
  };
  for (const auto& [file, secret] : draft.secrets) {
    std::error_code ignored;
    if (fs::exists(file, ignored))
      return Error{ErrorCode::conflict,
                   file.string() + " exists already. Remove it, or choose another --name"};
    if (auto done = make_owner_file(file, secret, "the file"); !done) {
      roll_back();
      return done.error();
    }
    made.push_back(file);
  }
  if (before.exists) {
    auto backup = read_config(before.path.string() + ".before-setup");
    if (!backup) return backup.error();
    backup->mode = before.mode;
    if (auto done = write_config(*backup, before.text); !done) return done.error();
  }
  if (auto done = write_config(before, text); !done) {
    roll_back();
    return done.error();
  }
  const auto loaded = Configuration::load({.file = before.path});
  std::string why = loaded ? "" : to_text(loaded.error());
  if (loaded) {
    const auto& channels = loaded->settings().alerts.channels;
    const auto secrets = channel_secrets({.channels = {*channels.find(name)}});
    if (!secrets) why = to_text(secrets.error());
  }
  if (why.empty()) return loaded->settings();
  roll_back();
  if (auto now = read_config(before.path); now)
    (void)(before.exists ? write_config(*now, before.text) : delete_config(*now));
  return Error{ErrorCode::invalid, "the settings would be wrong, so nothing was changed:\n" + why};
}

int send_test(const Settings& settings, const std::string& name) {
  const auto secrets = channel_secrets(settings.alerts);
  if (!secrets) return complain({ErrorCode::invalid, to_text(secrets.error())});
  const auto result = alert_sender(settings, name, secrets->at(name), {})
                          .send({.key = "test-" + new_ulid(system_clock().wall())});
  const bool sent = result.kind == SendResult::Kind::accepted;
  print_line((sent ? "sent: " : "not sent: ") + result.answer);
  if (!sent)
    print_line("The channel stays in the settings. Mend it, then: watchdog-monitor alerts --test " +
               name);
  return sent ? exit_done : exit_failed;
}

}  // namespace

int set_up_channel(AlertsSetup setup) {
  const bool asks = isatty(STDIN_FILENO) == 1;
  if (setup.kind.empty() && !asks) {
    warn(
        "standard input is not a terminal, so nothing can be asked. Give --kind and what the kind "
        "needs, for example: --kind ntfy --url https://ntfy.sh/TOPIC");
    return exit_usage;
  }
  if (setup.kind.empty()) {
    std::string names;
    for (const auto& kind : channel_kinds)
      names += (names.empty() ? "" : ", ") + std::string(kind.name);
    while (kind_named(setup.kind) == nullptr) {
      auto kind = asked("kind of channel (" + names + ")", Need::must);
      if (!kind) return complain(kind.error());
      setup.kind = std::move(*kind);
    }
  }
  const auto* kind = kind_named(setup.kind);
  if (setup.name.empty()) setup.name = setup.kind;
  if (asks)
    if (auto done = ask_for_rest(*kind, setup); !done) return complain(done.error());
  const auto path =
      setup.sources.file ? *setup.sources.file : usual_settings_file(process_environment());
  if (path.empty())
    return complain({ErrorCode::invalid, "there is no place for settings. Set HOME, or --config"});
  const auto before = read_config(path);
  if (!before) return complain(before.error());
  if (before->exists) {
    const auto now = Configuration::load({.file = before->path});
    if (!now) return complain({ErrorCode::invalid, to_text(now.error())});
    if (now->settings().alerts.channels.contains(setup.name))
      return complain({ErrorCode::conflict, "there is a channel " + setup.name + " in " +
                                                before->path.string() + ". Choose another --name"});
  }
  const auto folder = fs::absolute(before->path).parent_path();
  const auto draft = draft_of(*kind, setup, folder);
  const auto settings =
      written_settings(*before, before->text + block_of(setup.name, draft), draft, setup.name);
  if (!settings) return complain(settings.error());
  print_line("channel " + setup.name + " is in " + before->path.string());
  for (const auto& [file, secret] : draft.secrets)
    print_line("its secret is in " + file.string() + ", which only you can read");
  print_line("a monitor that runs with these settings uses the channel in a few seconds");
  return setup.no_test ? exit_done : send_test(*settings, setup.name);
}

}  // namespace watchdog::monitor
