// `write_file` stages the content beside its target and lets the write fence publish it, so a call
// that is over changes nothing. Its resource key, its preview and its target come from `resolve`.
// The shell passes output on while the command runs, to the call and to the artifact store. The
// store keeps it only if it is too long to be shown. Pages end at a whole character and name the
// next offset.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "codec/fields.h"
#include "privacy/content.h"
#include "privacy/redaction.h"
#include "watchdog/tool.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t page_bytes = 8'000;
constexpr std::size_t name_bytes_max = 4'096;
constexpr std::size_t listed_max = 1'000;
constexpr std::size_t command_bytes_max = 100'000;

ToolReply failed(const Error& error) {
  return {.ok = false, .text = error.message};
}

ToolReply denied(const Error& error) {
  return {.ok = false, .text = "arguments: " + error.message};
}

/// The arguments of a call, read; or what is wrong with them.
template <class Arguments, class Read>
Result<Arguments> read_arguments(std::string_view text, Read&& read) {
  const auto parsed = parse_object(text);
  if (!parsed) return parsed.error();
  Fields fields(*parsed);
  Arguments arguments;
  read(fields, arguments);
  if (fields.error()) return *fields.error();
  return arguments;
}

/// Drops the beginning of a character whose rest is behind.
void end_with_a_character(std::string& bytes) {
  for (std::size_t back = 1; back < std::min<std::size_t>(bytes.size(), 4); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte > 0xF4U    ? 1
                               : byte >= 0xF0U ? 4
                               : byte >= 0xE0U ? 3
                               : byte >= 0xC0U ? 2
                                               : 1;
    if (length > back) bytes.resize(bytes.size() - back);
    return;
  }
}

/// The page with its secrets: the model may write it back.
std::string with_secrets(const ArtifactPage& page) {
  std::string text;
  std::size_t copied = 0;
  for (const auto& secret : page.taken) {
    const auto at = static_cast<std::size_t>(secret.at - page.offset);
    if (at < copied || at + secret_mask.size() > page.bytes.size()) continue;
    text.append(page.bytes, copied, at - copied).append(secret.text);
    copied = at + secret_mask.size();
  }
  return text.append(page.bytes, copied);
}

/// A page, where something of the output was dropped, and where the next page begins.
std::string page_text(ArtifactPage page) {
  const bool ends_at_gap = page.dropped > 0 && page.offset + page.bytes.size() == page.dropped_at;
  if (!ends_at_gap && page.offset + page.bytes.size() < page.total)
    end_with_a_character(page.bytes);
  const auto end = page.offset + page.bytes.size();
  const auto dropped = std::to_string(page.dropped) + " bytes ";
  std::string text;
  if (page.dropped > 0 && page.offset == page.dropped_at) {
    text = "[" + dropped + "before this page were dropped]\n";
  }
  text += with_secrets(page);
  if (ends_at_gap) text += "\n[" + dropped + "after this page were dropped]";
  if (end < page.total) {
    text += "\n[bytes " + std::to_string(page.offset) + " to " + std::to_string(end) + " of " +
            std::to_string(page.total) + "; go on with offset " + std::to_string(end) + "]";
  }
  return text;
}

struct Page {
  std::string name;
  std::int64_t offset = 0;
  std::int64_t limit = page_bytes;
};

Result<Page> page_of(const ToolCall& call, const char* name) {
  return read_arguments<Page>(call.arguments, [&](Fields& fields, Page& page) {
    std::optional<std::int64_t> offset;
    std::optional<std::int64_t> limit;
    fields.text(name, page.name, name_bytes_max);
    fields.integer("offset", offset);
    fields.integer("limit", limit);
    if (page.name.empty()) fields.fail(ErrorCode::malformed, name, "is missing");
    if (offset && *offset < 0) fields.fail(ErrorCode::invalid, "offset", "is below 0");
    if (limit && *limit < 1) fields.fail(ErrorCode::invalid, "limit", "is below 1");
    page.offset = offset.value_or(0);
    page.limit = std::min<std::int64_t>(limit.value_or(page_bytes), ArtifactStore::page_bytes_max);
  });
}

std::size_t masks_in(std::string_view text) {
  constexpr std::string_view mark = "[redacted";
  std::size_t count = 0;
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + mark.size())) ++count;
  return count;
}

/// The secrets that `redact` would take out of it.
std::size_t secrets_in(std::string_view text) {
  const auto after = masks_in(redact(text));
  return after - std::min(after, masks_in(text));
}

/// Calls `see` with each line until that returns true.
template <class See>
bool any_line(std::string_view text, const See& see) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    if (see(line)) return true;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return false;
}

/// Returns whether the content has masks in the places of secrets, or of other texts, that the file
/// has. A model got such a text from a log, a report or a stored output, and not from the file.
bool loses_originals(std::string_view before, std::string_view content) {
  if (masks_in(content) <= masks_in(before)) return false;
  if (secrets_in(content) < secrets_in(before)) return true;
  constexpr std::size_t masked_lines_max = 100;
  std::size_t lines = 0;
  return any_line(content, [&](std::string_view line) {
    const auto begin = line.find("[redacted");
    if (begin == line.npos || ++lines > masked_lines_max) return false;
    const auto head = line.substr(0, begin);
    const auto last = line.rfind("[redacted");
    const auto tail = line.substr(std::min(line.size(), line.find(']', last) + 1));
    if (line.find(']', last) == line.npos || head.size() + tail.size() < 3) return false;
    return any_line(before, [&](std::string_view own) {
      return own.size() > head.size() + tail.size() && own.starts_with(head) &&
             own.ends_with(tail) && masks_in(own) == 0;
    });
  });
}

/// Refuses a content that would replace originals of the file by masks.
Result<void> require_originals(const Workspace& workspace, const std::string& path,
                               std::string_view content) {
  if (masks_in(content) == 0) return {};
  const auto file = workspace.read(path);  // not there: nothing is lost
  if (!file || !loses_originals(file->bytes, content)) return {};
  return Error{ErrorCode::invalid,
               path +
                   " was not written: the content has \"[redacted]\" where the file has the "
                   "original text, which would be lost. Read the file with read_file and write "
                   "its own text; to change a few lines, use a command that edits only these.",
               "content"};
}

constexpr const char* page_schema_end =
    R"("offset":{"type":"integer","minimum":0,"description":"Where to begin, in bytes."},)"
    R"("limit":{"type":"integer","minimum":1,"maximum":65536,"description":"How many bytes."}},)";

class WriteFile final : public Tool {
 public:
  WriteFile(std::shared_ptr<const Workspace> workspace, bool confirm)
      : workspace_(std::move(workspace)) {
    spec_.name = "write_file";
    spec_.description = "Replaces a file of the workspace, or makes it.";
    spec_.parameters =
        R"({"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},)"
        R"("required":["path","content"]})";
    spec_.concurrency = Concurrency::by_resource;
    spec_.effect = Effect::local_write;
    spec_.idempotency = Idempotency::yes;
    spec_.gated = true;
    spec_.needs_confirmation = confirm;
    spec_.resources = [own = workspace_](std::string_view arguments) {
      const auto read = arguments_of(arguments);
      const auto path = read ? own->resolve(read->path) : Result<fs::path>(read.error());
      std::vector<ResourceKey> keys;
      if (path) keys.push_back({path->string(), true});
      return keys;
    };
  }
  const ToolSpec& spec() const noexcept override { return spec_; }

  Result<Preview> preview(const ToolCall& call) override {
    const auto read = arguments_of(call.arguments);
    if (!read) return read.error();
    const auto path = workspace_->resolve(read->path);
    if (!path) return path.error();
    if (const auto whole = require_originals(*workspace_, read->path, read->content); !whole)
      return whole.error();
    auto diff = workspace_->diff(read->path, read->content);
    if (!diff) return diff.error();
    return Preview{.diff = std::move(*diff), .paths = {*path}};
  }

  ToolReply invoke(ToolContext& now) override {
    const auto read = arguments_of(now.call().arguments);
    if (!read) return denied(read.error());
    const auto path = workspace_->resolve(read->path);
    if (!path) return failed(path.error());
    if (const auto whole = require_originals(*workspace_, read->path, read->content); !whole)
      return failed(whole.error());
    const auto staged = workspace_->stage(read->path, read->content);
    if (!staged) return failed(staged.error());
    switch (now.writes().publish_file(*staged, *path)) {
      case CommitResult::committed:
        return {.text =
                    "wrote " + std::to_string(read->content.size()) + " bytes to " + read->path};
      case CommitResult::fenced:
        return {.ok = false, .text = "it was too late: the call is over, nothing was written"};
      case CommitResult::precondition_failed:
        return {.ok = false, .text = read->path + " has changed meanwhile; nothing was written"};
      case CommitResult::io_error:
        break;
    }
    return {.ok = false, .text = read->path + " could not be replaced"};
  }

 private:
  struct Arguments {
    std::string path;
    std::string content;
  };
  static Result<Arguments> arguments_of(std::string_view text) {
    return read_arguments<Arguments>(text, [](Fields& fields, Arguments& read) {
      fields.text("path", read.path, name_bytes_max);
      fields.text("content", read.content, Workspace::file_bytes_max);
      if (read.path.empty()) fields.fail(ErrorCode::malformed, "path", "is missing");
      if (fields.find("content") == nullptr) {
        fields.fail(ErrorCode::malformed, "content", "is missing");
      }
    });
  }

  const std::shared_ptr<const Workspace> workspace_;
  ToolSpec spec_;
};

/// A filter that the command started may sort, or sleep, before it writes.
constexpr Millis drain_grace{3'000};

/// Several times within a deadline.
Millis look_every(std::optional<Millis> deadline) {
  const Millis usual = ProcessHooks{}.look_every;
  return deadline ? std::min(*deadline / 4, usual) : usual;
}

/// Returns remarks on a program's end besides its output.
std::string remarks_on(const ProcessEnd& end, const ShellOptions& options) {
  std::string text;
  if (end.survivors > 0) {
    text += "\n[" + std::to_string(end.survivors) +
            (end.survivors == 1 ? " process was" : " processes were") +
            " still running when the command ended";
    text += options.survivors == Survivors::kill ? " and killed" : " and left running";
    for (std::size_t at = 0; at < end.survivor_names.size(); ++at) {
      text += (at == 0 ? ": " : ", ") + end.survivor_names[at];
    }
    if (end.output_cut) text += ". Output that they still had is lost";
    text += "]";
  }
  if (end.containment_lost) text += "\n[some of its processes could not be ended]";
  return text;
}

std::string printed(const ProcessEnd& end) {
  const auto left_out = end.output_bytes - end.head.size() - end.tail.size();
  if (left_out == 0) return end.head + end.tail;
  return end.head + "\n[" + std::to_string(left_out) + " bytes left out]\n" + end.tail;
}

class Shell final : public Tool {
 public:
  Shell(std::shared_ptr<const Workspace> workspace, std::shared_ptr<ArtifactStore> artifacts,
        ShellOptions options)
      : workspace_(std::move(workspace)), artifacts_(std::move(artifacts)), options_(options) {
    spec_.name = "shell";
    spec_.description =
        "Runs a command line with /bin/sh in the workspace. Without input and terminal. What is "
        "still running when it ends is ";
    spec_.description += options.survivors == Survivors::kill ? "killed." : "left running.";
    spec_.parameters =
        R"({"type":"object","properties":{"command":{"type":"string"},"timeout_ms":{"type":)"
        R"("integer","minimum":1000,"description":"Longest time in milliseconds without new output )"
        R"(or work. Optional."}},"required":["command"]})";
    spec_.takes_timeout = true;
    spec_.deadline = options.deadline;
    spec_.concurrency = options.concurrency;
    spec_.retry_on_timeout = options.retry_on_timeout;
    spec_.effect = Effect::external_write;
    spec_.stoppable = Stoppable::killable;
    spec_.needs_confirmation = options.confirm;
    spec_.shape = OutputShape::shell;
  }
  const ToolSpec& spec() const noexcept override { return spec_; }

  Result<void> ready() const override {
    if (const auto helper = process_helper(); !helper) return helper.error();
    return {};
  }

  ToolReply invoke(ToolContext& now) override {
    const auto command =
        read_arguments<std::string>(now.call().arguments, [](Fields& fields, std::string& text) {
          fields.text("command", text, command_bytes_max);
          if (text.empty()) fields.fail(ErrorCode::malformed, "command", "is missing");
          if (text.find('\0') != std::string::npos) {
            fields.fail(ErrorCode::invalid, "command", "holds a NUL");
          }
        });
    if (!command) return denied(command.error());

    std::optional<ArtifactStore::Sink> sink;
    if (artifacts_) sink.emplace(artifacts_->sink());
    const auto end = run_process({.argv = {"/bin/sh", "-c", *command},
                                  .cwd = workspace_->root(),
                                  .inherit_env = options_.inherit_env,
                                  .ladder = options_.ladder,
                                  .survivors = options_.survivors,
                                  .drain_grace = drain_grace},
                                 {.stop = now.stop(),
                                  .output =
                                      [&](std::string_view bytes, OutputStream) {
                                        now.partial(bytes);
                                        if (sink) sink->write(bytes);
                                      },
                                  .working = [&] { now.working(); },
                                  .look_every = look_every(now.remaining())});
    if (!end) {
      return {.ok = false, .text = end.error().message, .failure = FailureKind::spawn_failed};
    }
    ToolReply reply{.text = printed(*end) + remarks_on(*end, options_)};
    if (end->output_bytes > end->head.size() + end->tail.size())
      reply.whole_bytes = end->output_bytes;
    const auto is_long = spec_.inline_chars_max.value_or(OutputLimits{}.inline_chars);
    if (sink && end->output_bytes > is_long) {
      if (auto kept = sink->finish("text/plain")) {
        reply.artifact = std::move(*kept);
      } else {
        reply.text += "\n[the whole output could not be kept: " + kept.error().message + "]";
      }
    }
    if (end->stopped) {
      reply.ok = false;
      return reply;
    }
    if (end->signal) {
      reply.ok = false;
      reply.failure = FailureKind::killed_by_signal;
    } else if (end->code != 0) {
      reply.ok = false;
      reply.failure = FailureKind::exit_nonzero;
    }
    if (!reply.ok) reply.exit_code = end->status();
    return reply;
  }

 private:
  const std::shared_ptr<const Workspace> workspace_;
  const std::shared_ptr<ArtifactStore> artifacts_;
  const ShellOptions options_;
  ToolSpec spec_;
};

}  // namespace

std::shared_ptr<Tool> read_file_tool(std::shared_ptr<const Workspace> workspace) {
  if (!workspace) return nullptr;
  return make_tool(
      {.name = "read_file",
       .description = "A page of a file of the workspace.",
       .parameters = std::string(R"({"type":"object","properties":{"path":{"type":"string"},)") +
                     page_schema_end + R"("required":["path"]})",
       .effect = Effect::none},
      [own = std::move(workspace)](ToolContext& now) -> ToolReply {
        const auto asked = page_of(now.call(), "path");
        if (!asked) return denied(asked.error());
        auto part = own->read(asked->name, static_cast<std::uint64_t>(asked->offset),
                              static_cast<std::size_t>(asked->limit));
        if (!part) return failed(part.error());
        return {.text = page_text({std::move(part->bytes), part->offset, part->total})};
      });
}

std::shared_ptr<Tool> list_files_tool(std::shared_ptr<const Workspace> workspace) {
  if (!workspace) return nullptr;
  return make_tool(
      {.name = "list_files",
       .description = "Names in a directory of the workspace; directories end with a slash.",
       .parameters = R"({"type":"object","properties":{"path":{"type":"string"}}})",
       .effect = Effect::none},
      [own = std::move(workspace)](ToolContext& now) -> ToolReply {
        const auto asked = read_arguments<std::string>(
            now.call().arguments,
            [](Fields& fields, std::string& path) { fields.text("path", path, name_bytes_max); });
        if (!asked) return denied(asked.error());
        const auto found = own->list(asked->empty() ? "." : *asked, listed_max);
        if (!found) return failed(found.error());
        std::string text;
        for (const auto& name : found->names) text += name + "\n";
        if (found->total > found->names.size()) {
          text += "[and " + std::to_string(found->total - found->names.size()) + " more]";
        }
        return {.text = text};
      });
}

std::shared_ptr<Tool> write_file_tool(std::shared_ptr<const Workspace> workspace, bool confirm) {
  if (!workspace) return nullptr;
  return std::make_shared<WriteFile>(std::move(workspace), confirm);
}

std::shared_ptr<Tool> shell_tool(std::shared_ptr<const Workspace> workspace,
                                 std::shared_ptr<ArtifactStore> artifacts, ShellOptions options) {
  if (!workspace) return nullptr;
  return std::make_shared<Shell>(std::move(workspace), std::move(artifacts), options);
}

std::shared_ptr<Tool> artifact_read_tool(std::shared_ptr<ArtifactStore> artifacts) {
  if (!artifacts) return nullptr;
  return make_tool(
      {.name = "artifact_read",
       .description = "A page of an output that was too long to be shown.",
       .parameters =
           std::string(
               R"({"type":"object","properties":{"id":{"type":"string","description":"art_…"},)") +
           page_schema_end + R"("required":["id"]})",
       .effect = Effect::none},
      [own = std::move(artifacts)](ToolContext& now) -> ToolReply {
        const auto asked = page_of(now.call(), "id");
        if (!asked) return denied(asked.error());
        auto part = own->read(asked->name, static_cast<std::uint64_t>(asked->offset),
                              static_cast<std::size_t>(asked->limit));
        if (!part) return failed(part.error());
        return {.text = page_text(std::move(*part))};
      });
}

}  // namespace watchdog
