-- Volumes and chapters that are counted in Chinese characters are in the order of their numbers: 上, 中, 下 and 第二話 before 第十話. By
-- their characters 下 comes before 中, and 七 before 三 and 二.

-- +goose Up

-- arabic is the value of a number in Chinese characters, 9,999,999 at most.
-- +goose StatementBegin
create function app.arabic(p_number text) returns bigint language plpgsql immutable parallel safe as $$
declare
  v_total bigint := 0;
  v_digit bigint := 0;
  v_unit integer;
begin
  for i in 1..length(p_number) loop
    v_unit := case substr(p_number, i, 1) when '十' then 10 when '百' then 100 end;
    if v_unit is null then
      v_digit := least(v_digit * 10 + strpos('一二三四五六七八九', substr(p_number, i, 1)), 9999999);
    else
      v_total := least(v_total + greatest(v_digit, 1) * v_unit, 9999999);
      v_digit := 0;
    end if;
  end loop;
  return least(v_total + v_digit, 9999999);
end $$;
-- +goose StatementEnd

-- counted writes such numbers with digits, where 第 is in front of one or a unit behind, and 上, 中, 下 as 1, 2, 3, where a unit
-- is behind or nothing beside it (see naming.CompareFile).
-- +goose StatementBegin
create function app.counted(p_name text) returns text language plpgsql immutable parallel safe as $$
declare
  v_done text := '';
  v_rest text := p_name;
  v_number text;
begin
  while v_rest <> '' loop
    v_number := substring(v_rest from '^[一二三四五六七八九十百]+');
    if v_number is null then
      v_number := substring(v_rest from '^[^一二三四五六七八九十百]+');
      v_done := v_done || v_number;
    elsif v_done ~ '第\s*$' or substr(v_rest, length(v_number) + 1) ~ '^\s*[巻卷冊册話话回章集]' then
      v_done := v_done || app.arabic(v_number);
    else
      v_done := v_done || v_number;
    end if;
    v_rest := substr(v_rest, length(v_number) + 1);
  end loop;
  for i in 1..3 loop
    v_done := regexp_replace(v_done, replace('P(?=[巻卷冊册篇編编集])|(?<=^|[\s(（\[【「/])P(?=$|[\s)）\]】」/])', 'P', substr('上中下', i, 1)), i::text, 'g');
  end loop;
  return v_done;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function app.file_order(p_key text) returns text language sql immutable parallel safe as $$
  select replace(case when p_key ~ '[上中下一二三四五六七八九十百]' then app.counted(regexp_replace(p_key, '\.[^./]*$', ''))
    else regexp_replace(p_key, '\.[^./]*$', '') end, '/', E'\t');
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function app.file_order(p_key text) returns text language sql immutable parallel safe as $$
  select replace(regexp_replace(p_key, '\.[^./]*$', ''), '/', E'\t');
$$;
-- +goose StatementEnd
drop function app.counted;
drop function app.arabic;
