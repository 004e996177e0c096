// An output that comes in pieces. Small ones are buffered and touch the disk at their end; larger
// ones are written to `tmp` as they come. The digest, and with it the name, is known at the end.
#include <cerrno>
#include <memory>
#include <utility>

#include "files/sha256.h"
#include "outputs/artifact_store_state.h"
#include "privacy/redactor.h"

namespace watchdog {
namespace {

constexpr std::size_t sink_buffer_bytes = 64U << 10U;

}  // namespace

struct ArtifactStore::Sink::State {
  explicit State(std::shared_ptr<ArtifactStore::State> owner)
      : store(std::move(owner)), writer(store->limits.artifact_bytes_max) {
    buffer.reserve(sink_buffer_bytes);
  }

  void add(std::string_view clean) {
    digest.add(clean);
    given += clean.size();
    if (buffer.size() + clean.size() > sink_buffer_bytes) flush();
    if (clean.size() > sink_buffer_bytes) {
      pass(clean);
    } else {
      buffer.append(clean);
    }
  }
  /// Small outputs touch the disk at their end only.
  void flush() noexcept {
    if (trouble == 0 && !pending.file()) {
      pending = store->new_file();
      if (!pending.file()) trouble = errno;
    }
    pass(buffer);
    buffer.clear();
  }
  void pass(std::string_view bytes) noexcept {
    if (trouble == 0) trouble = writer.append(pending.file(), bytes);
    if (trouble != 0) pending = {};  // what is there is of no use, and the disk may be full of it
  }

  std::shared_ptr<ArtifactStore::State> store;
  ArtifactWriter writer;
  PendingFile pending;
  Redactor redactor;
  Sha256 digest;
  std::string buffer;
  std::uint64_t given = 0;
  int trouble = 0;
  bool finished = false;
};

ArtifactStore::Sink::Sink(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArtifactStore::Sink::~Sink() = default;
ArtifactStore::Sink::Sink(Sink&&) noexcept = default;
ArtifactStore::Sink& ArtifactStore::Sink::operator=(Sink&&) noexcept = default;

ArtifactStore::Sink ArtifactStore::sink() {
  return Sink(std::make_unique<Sink::State>(state_));
}

void ArtifactStore::Sink::write(std::string_view bytes) noexcept {
  if (!state_->finished) state_->add(state_->redactor.feed(bytes));
}

Result<ArtifactRef> ArtifactStore::Sink::finish(std::string_view media_type) {
  if (std::exchange(state_->finished, true))
    return Error{ErrorCode::invalid, "this output was stored already"};
  state_->add(state_->redactor.rest());
  const auto digest = state_->digest.digits();
  auto& store = *state_->store;
  auto ref = store.existing(digest, state_->given);
  if (!ref) {
    state_->flush();
    if (state_->trouble != 0) {
      auto error = store.failed(state_->trouble);
      error.message += "; " + std::to_string(state_->given) + " bytes were to be kept";
      return error;
    }
    auto added = store.add(state_->pending, state_->writer, digest);
    if (!added) return added.error();
    ref = std::move(*added);
  }
  ref->media_type = media_type;
  state_->pending = {};
  return *ref;
}

}  // namespace watchdog
