# The formula for Homebrew. scripts/release/homebrew.sh fills in the version, and the checksums of
# the release's archives.

class Millrace < Formula
  desc "Background jobs on RabbitMQ and LavinMQ"
  homepage "https://github.com/millrace-jobs/millrace"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/millrace-jobs/millrace/releases/download/v@VERSION@/millrace_@VERSION@_darwin_arm64.tar.gz"
      sha256 "@darwin_arm64@"
    end
    on_intel do
      url "https://github.com/millrace-jobs/millrace/releases/download/v@VERSION@/millrace_@VERSION@_darwin_amd64.tar.gz"
      sha256 "@darwin_amd64@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/millrace-jobs/millrace/releases/download/v@VERSION@/millrace_@VERSION@_linux_arm64.tar.gz"
      sha256 "@linux_arm64@"
    end
    on_intel do
      url "https://github.com/millrace-jobs/millrace/releases/download/v@VERSION@/millrace_@VERSION@_linux_amd64.tar.gz"
      sha256 "@linux_amd64@"
    end
  end

  def install
    bin.install "millrace"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/millrace.bash" => "millrace"
    zsh_completion.install "completions/_millrace"
    fish_completion.install "completions/millrace.fish"
  end

  service do
    run [opt_bin/"millrace", "serve", "--state-dir", var/"lib/millrace"]
    keep_alive true
    log_path var/"log/millrace.log"
    error_log_path var/"log/millrace.log"
  end

  test do
    assert_match "millrace v#{version} ", shell_output("#{bin}/millrace version")
  end
end
