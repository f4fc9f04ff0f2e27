package raw

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

type description struct {
	ABIVersion int `json:"abi_version"`
	Functions  []struct{ Name, Since string }
	Enums      []struct {
		Name   string
		Values []struct {
			Name  string
			Value int32
		}
	}
}

func descriptionOf(t *testing.T) description {
	t.Helper()
	text, err := os.ReadFile("../../../abi/rukh-api.json")
	if err != nil {
		t.Fatal(err)
	}
	var found description
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func number(t *testing.T, version string) uint32 {
	t.Helper()
	var parts [3]uint32
	for i, part := range strings.Split(version, ".") {
		for _, digit := range part {
			parts[i] = parts[i]*10 + uint32(digit-'0')
		}
	}
	return parts[0]*1000000 + parts[1]*1000 + parts[2]
}

func TestEveryFunctionIsThere(t *testing.T) {
	api := descriptionOf(t)
	if len(api.Functions) != len(described) || api.ABIVersion != describedABI {
		t.Fatal(len(api.Functions), len(described), api.ABIVersion, describedABI)
	}
	version := ABIVersion()
	for index, entry := range api.Functions {
		if entry.Name != "rukh_"+described[index].name || entry.Since != described[index].since {
			t.Error(entry, described[index])
		}
		if _, err := function(index); err != nil && number(t, entry.Since) <= version {
			t.Error(err)
		}
	}
}

func TestElementTypesHaveTheirNames(t *testing.T) {
	for _, enum := range descriptionOf(t).Enums {
		if enum.Name != "rukh_element_type" {
			continue
		}
		for _, value := range enum.Values {
			name := strings.ToLower(strings.TrimPrefix(value.Name, "RUKH_ELEMENT_"))
			if ElementType(value.Value).String() != name || ElementTypeNamed(name) != ElementType(value.Value) {
				t.Error(value, ElementType(value.Value), ElementTypeNamed(name))
			}
		}
	}
	if ElementType(999).String() != "999" || ElementTypeNamed("nope") != ElementUndefined {
		t.Error(ElementType(999), ElementTypeNamed("nope"))
	}
	if ErrorInvalidInput.String() != "invalid_input" || OK.String() != "ok" {
		t.Error(ErrorInvalidInput, OK)
	}
}

func has(t *testing.T, err error, status Status, text string) {
	t.Helper()
	of, ok := err.(*Error)
	if !ok || of.Status != status || !regexp.MustCompile(text).MatchString(of.Message) {
		t.Errorf("%v; %v %q was expected", err, status, text)
	}
}

func TestStatusesBecomeErrorsWithTheLibrarysText(t *testing.T) {
	var count uint
	has(t, ValueElementCount(nil, &count), ErrorInvalidArgument, "(?i)null")
	has(t, EnvironmentOptionsSet(nil, "a\x00", "b"), ErrorInvalidArgument, `"a\\x00" has a NUL inside`)
}

func TestAFunctionThatTheLibraryDoesNotHaveSaysSo(t *testing.T) {
	older := &library{path: "/usr/lib/librukh.so.0.1"}
	for index, entry := range described {
		if entry.since != "0.1.0" {
			_, err := older.function(index)
			has(t, err, ErrorUnsupported, "rukh_"+entry.name+" came with binary interface "+entry.since+"; /usr/lib/librukh")
		}
	}
	has(t, older.check(), ErrorUnsupported, "rukh_abi_version")
}

func TestLibrariesThatDoNotFitAreRefused(t *testing.T) {
	for _, version := range []uint32{1000, 1001, 1999} {
		if err := checkVersion(version); err != nil {
			t.Error(err)
		}
	}
	has(t, checkVersion(2000), ErrorUnsupported, `interface 0\.2\.0; .* series 0\.1$`)
	has(t, checkVersion(1001000), ErrorUnsupported, `interface 1\.1\.0; .* series 0\.1$`)
	_, err := load("/nowhere/librukh.so")
	has(t, err, ErrorNotFound, "set RUKH_LIBRARY to its path.*/nowhere/librukh.so")
	_, err = load("libc.so.6")
	has(t, err, ErrorUnsupported, "rukh_abi_version")
}
