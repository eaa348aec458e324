#!/usr/bin/env bash
# What a continuous integration system does with a pull request: lint, test, review.
# Needs no AWS credentials. Ends with 1 where a step failed or --fail-on matches, after all steps ran; 2: wrong input.
#
#   scripts/review.sh [--base REF] [--fail-on WORDS] [--out FOLDER] [--whole TEXT] [STEP …]
#
# STEP: lint, test, review; without any all three. The report lies in FOLDER (.local/review of the project): review.md, review.html,
# review.json.
# On GitHub Actions lint annotates the lines of the pull request, and the report goes to the job's summary.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$here/.envs/main/bin/python}
out=''
options=() steps=() annotate=${GITHUB_ACTIONS:-false} worst=0
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}

wrong() { printf 'scripts/review.sh: %s\n' "$1" >&2; sed -n '5p' "$here/scripts/review.sh" >&2; exit 2; }
while (($#)); do
  case $1 in
    --base | --fail-on | --whole)
      (($# > 1)) || wrong "$1 without a value"
      [[ -z $2 ]] || options+=("$1" "$2")
      shift ;;
    --out) (($# > 1)) || wrong "$1 without a value"; out=$2; shift ;;
    lint | test | review) steps+=("$1") ;;
    *) wrong "found $1; allowed: --base, --fail-on, --out, --whole, lint, test, review" ;;
  esac
  shift
done
((${#steps[@]})) || steps=(lint test review)

run() { # a step, in a group of the log; the worst of all exit codes is this script's
  local code=0
  if [[ $annotate == true ]]; then echo "::group::$1"; else echo "== $1"; fi
  "${@:2}" || code=$?
  if [[ $annotate == true ]]; then echo "::endgroup::"; fi
  if ((code)); then echo "$1 ended with $code"; fi
  if ((code > worst)); then worst=$code; fi
}
lint() {
  local form=()
  [[ $annotate != true ]] || form=(--annotations)
  "$python" -m tritonstack lint ${form[@]+"${form[@]}"}
}
review() {
  local code=0
  [[ -n $out ]] || out=$("$python" -c 'from tritonstack.paths import project_folder; print(project_folder())')/.local/review
  mkdir -p "$out"
  rm -f "$out"/review.{md,html,json}
  "$python" -m tritonstack review ${options[@]+"${options[@]}"} \
    --markdown "$out/review.md" --html "$out/review.html" --output "$out/review.json" || code=$?
  if [[ -f $out/review.md && -n ${GITHUB_STEP_SUMMARY:-} ]]; then cat "$out/review.md" >>"$GITHUB_STEP_SUMMARY"; fi
  return "$code"
}

for step in "${steps[@]}"; do
  case $step in
    lint) run lint lint ;;
    test) run test make -C "$here" test ;;
    review) run review review ;;
  esac
done
if [[ " ${steps[*]} " == *" review "* && -f $out/review.md ]]; then
  echo "the report lies in $out"
fi
exit "$worst"
